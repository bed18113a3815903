#pragma once

#include <napi.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"

// A Status becomes an Error whose `code` is the Status's code.

namespace gnnd::node {

inline const char* NameOf(Code code) {
  switch (code) {
    case Code::kOk:
      return "OK";
    case Code::kInvalidArgument:
      return "SPEC_INVALID";
    case Code::kNotFound:
      return "DATASET_NOT_FOUND";
    case Code::kDatasetCorrupt:
      return "DATASET_CORRUPT";
    case Code::kShmAllocationFailed:
      return "SHM_ALLOCATION_FAILED";
    case Code::kShmCorrupted:
      return "SHM_CORRUPTED";
    case Code::kIo:
      return "IO";
    case Code::kAborted:
      return "ABORTED";
    case Code::kNumericDivergence:
      return "NUMERIC_DIVERGENCE";
    case Code::kPluginFailed:
      return "PLUGIN_FAILED";
    case Code::kInternal:
      return "INTERNAL";
  }
  return "INTERNAL";
}

// All but kOk, in the order of their declaration to TypeScript.
inline constexpr Code kFailures[] = {
    Code::kInvalidArgument, Code::kNotFound, Code::kDatasetCorrupt, Code::kShmAllocationFailed,
    Code::kShmCorrupted,    Code::kIo,       Code::kAborted,        Code::kNumericDivergence,
    Code::kPluginFailed,    Code::kInternal};

inline Napi::Error ErrorOf(Napi::Env env, const Status& status) {
  Napi::Error error = Napi::Error::New(env, status.message());
  error.Set("code", Napi::String::New(env, NameOf(status.code())));
  return error;
}

inline void ThrowUnlessOk(Napi::Env env, const Status& status) {
  if (!status.ok()) throw ErrorOf(env, status);
}

// Reads the fields of the options of jobs (job_options.h); each one read must be there.
class Fields {
 public:
  Fields(const Napi::Value& value, std::string path) : path_(std::move(path)) {
    if (!value.IsObject()) Fail(value.Env(), "", "an object");
    object_ = value.As<Napi::Object>();
  }

  Fields Object(const char* key) const { return Fields(Get(key), path_ + "." + key); }

  std::string String(const char* key) const {
    const Napi::Value value = Get(key);
    if (!value.IsString()) Fail(value.Env(), key, "a string");
    return value.As<Napi::String>().Utf8Value();
  }

  bool Bool(const char* key) const {
    const Napi::Value value = Get(key);
    if (!value.IsBoolean()) Fail(value.Env(), key, "a boolean");
    return value.As<Napi::Boolean>().Value();
  }

  double Double(const char* key) const {
    const Napi::Value value = Get(key);
    if (!value.IsNumber()) Fail(value.Env(), key, "a number");
    return value.As<Napi::Number>().DoubleValue();
  }

  // An integer within [low, high], both exact in a double.
  int64_t Integer(const char* key, int64_t low, int64_t high) const {
    const double number = Double(key);
    if (!(number >= static_cast<double>(low)) || !(number <= static_cast<double>(high)) ||
        number != std::floor(number)) {
      Fail(object_.Env(), key,
           "an integer in " + std::to_string(low) + ".." + std::to_string(high));
    }
    return static_cast<int64_t>(number);
  }

  uint32_t Uint32(const char* key) const {
    return static_cast<uint32_t>(Integer(key, 0, UINT32_MAX));
  }

  uint64_t Uint64(const char* key) const {
    return static_cast<uint64_t>(Integer(key, 0, int64_t{1} << 53));
  }

  std::vector<int32_t> Int32List(const char* key) const {
    const Napi::Value value = Get(key);
    if (!value.IsArray()) Fail(value.Env(), key, "an array of integers");
    const auto array = value.As<Napi::Array>();
    std::vector<int32_t> list;
    for (uint32_t i = 0; i < array.Length(); ++i) {
      const Napi::Value element = array[i];
      if (!element.IsNumber()) Fail(value.Env(), key, "an array of integers");
      list.push_back(element.As<Napi::Number>().Int32Value());
    }
    return list;
  }

 private:
  Napi::Value Get(const char* key) const {
    const Napi::Value value = object_.Get(key);
    if (value.IsUndefined()) Fail(object_.Env(), key, "set");
    return value;
  }

  [[noreturn]] void Fail(Napi::Env env, const std::string& key, const std::string& wanted) const {
    throw Napi::TypeError::New(env, path_ + (key.empty() ? "" : "." + key) + " must be " + wanted);
  }

  std::string path_;
  Napi::Object object_;
};

}  // namespace gnnd::node
