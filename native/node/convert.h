#pragma once

#include <napi.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"

// How JavaScript values become C++ values at the border, and back. A missing or mistyped field is a
// TypeError that names its path: a bug of the caller, never a user's input error (those are judged
// in TypeScript). A Status becomes an Error whose `code` is the Status's code.

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

inline Napi::Error ErrorOf(Napi::Env env, const Status& status) {
  Napi::Error error = Napi::Error::New(env, status.message());
  error.Set("code", Napi::String::New(env, NameOf(status.code())));
  return error;
}

inline void ThrowUnlessOk(Napi::Env env, const Status& status) {
  if (!status.ok()) throw ErrorOf(env, status);
}

template <typename T>
T ValueOrThrow(Napi::Env env, Result<T> result) {
  ThrowUnlessOk(env, result.status());
  return std::move(*result);
}

// Reads the fields of a plain object; each one read must be there.
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

  // All 64 bits, from a BigInt.
  uint64_t Bits64(const char* key) const {
    const Napi::Value value = Get(key);
    if (!value.IsBigInt()) Fail(value.Env(), key, "a bigint");
    bool lossless = false;
    const uint64_t bits = value.As<Napi::BigInt>().Uint64Value(&lossless);
    if (!lossless) Fail(value.Env(), key, "an unsigned 64-bit bigint");
    return bits;
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

  // A copy of a Float32Array.
  std::vector<float> Floats(const char* key) const {
    const Napi::Value value = Get(key);
    if (!value.IsTypedArray() ||
        value.As<Napi::TypedArray>().TypedArrayType() != napi_float32_array) {
      Fail(value.Env(), key, "a Float32Array");
    }
    const auto array = value.As<Napi::Float32Array>();
    return {array.Data(), array.Data() + array.ElementLength()};
  }

  std::vector<double> DoubleList(const char* key) const {
    const Napi::Value value = Get(key);
    if (!value.IsArray()) Fail(value.Env(), key, "an array of numbers");
    const auto array = value.As<Napi::Array>();
    std::vector<double> list;
    for (uint32_t i = 0; i < array.Length(); ++i) {
      const Napi::Value element = array[i];
      if (!element.IsNumber()) Fail(value.Env(), key, "an array of numbers");
      list.push_back(element.As<Napi::Number>().DoubleValue());
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

inline Napi::Number NumberOf(Napi::Env env, uint64_t value) {
  return Napi::Number::New(env, static_cast<double>(value));
}

}  // namespace gnnd::node
