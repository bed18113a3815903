#pragma once

#include <napi.h>

#include <string>
#include <utility>
#include <vector>

#include "node/contract.h"

namespace gnnd::node {

// Exports the subjects of an addon and, for test/support/native-contract.ts only, their
// declarations: a hidden array of { name, text }.
inline Napi::Object Define(
    Napi::Env env, Napi::Object exports,
    const std::vector<std::pair<const char*, void (*)(Subject&)>>& subjects) {
  Napi::Array declarations = Napi::Array::New(env);
  for (const auto& [name, define] : subjects) {
    Subject subject(env, exports, name);
    define(subject);
    Napi::Object entry = Napi::Object::New(env);
    entry.Set("name", name);
    entry.Set("text", subject.Declaration());
    declarations.Set(declarations.Length(), entry);
  }
  exports.DefineProperty(Napi::PropertyDescriptor::Value("declarations", declarations));
  return exports;
}

}  // namespace gnnd::node
