#pragma once

#include <napi.h>

#include "core/model/model_spec.h"
#include "node/convert.h"

namespace gnnd::node {

// ModelManifest of contract.ts.
inline Napi::Value ManifestValue(Napi::Env env, const ParameterManifest& manifest) {
  Napi::Array tensors = Napi::Array::New(env);
  for (const ParameterTensor& tensor : manifest.tensors) {
    Napi::Array shape = Napi::Array::New(env);
    for (const uint32_t size : tensor.shape) {
      shape.Set(shape.Length(), Napi::Number::New(env, size));
    }
    Napi::Object entry = Napi::Object::New(env);
    entry.Set("name", tensor.name);
    entry.Set("shape", shape);
    entry.Set("offset", NumberOf(env, tensor.offset));
    tensors.Set(tensors.Length(), entry);
  }
  Napi::Array widths = Napi::Array::New(env);
  for (const uint32_t width : manifest.widths) {
    widths.Set(widths.Length(), Napi::Number::New(env, width));
  }
  Napi::Object result = Napi::Object::New(env);
  result.Set("tensors", tensors);
  result.Set("widths", widths);
  result.Set("numFloats", NumberOf(env, manifest.num_floats));
  return result;
}

}  // namespace gnnd::node
