#pragma once

#include <napi.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "node/table.h"

// Converts values at the border, by their C++ type: Codec<T>::Read checks and converts JavaScript's
// value, Write converts back, Type is the type's name in TypeScript. A missing or mistyped value is
// a TypeError that names its path: a bug of the caller, never a user's input error (TypeScript
// checks those).

namespace gnnd::node {

[[noreturn]] inline void Refuse(Napi::Env env, const std::string& path, const std::string& wanted) {
  throw Napi::TypeError::New(env, path + " must be " + wanted);
}

template <typename T>
struct Codec;

template <>
struct Codec<bool> {
  static std::string Type() { return "boolean"; }
  static bool Read(const Napi::Value& value, const std::string& path) {
    if (!value.IsBoolean()) Refuse(value.Env(), path, "a boolean");
    return value.As<Napi::Boolean>().Value();
  }
  static Napi::Value Write(Napi::Env env, bool value) { return Napi::Boolean::New(env, value); }
};

template <std::floating_point T>
struct Codec<T> {
  static std::string Type() { return "number"; }
  static T Read(const Napi::Value& value, const std::string& path) {
    if (!value.IsNumber()) Refuse(value.Env(), path, "a number");
    return static_cast<T>(value.As<Napi::Number>().DoubleValue());
  }
  static Napi::Value Write(Napi::Env env, T value) { return Napi::Number::New(env, value); }
};

// Integers that a double represents exactly.
template <std::integral T>
struct Codec<T> {
  static constexpr T kLeast = std::numeric_limits<T>::min();
  static constexpr uint64_t kMost =
      std::min<uint64_t>(std::numeric_limits<T>::max(), uint64_t{1} << 53);

  static std::string Type() { return "number"; }
  static T Read(const Napi::Value& value, const std::string& path) {
    const auto number = Codec<double>::Read(value, path);
    if (!(number >= static_cast<double>(kLeast)) || !(number <= static_cast<double>(kMost)) ||
        number != std::floor(number)) {
      Refuse(value.Env(), path,
             "an integer in " + std::to_string(kLeast) + ".." + std::to_string(kMost));
    }
    return static_cast<T>(number);
  }
  static Napi::Value Write(Napi::Env env, T value) {
    return Napi::Number::New(env, static_cast<double>(value));
  }
};

// An integer with all 64 bits.
struct Bits64 {
  uint64_t value = 0;
};

template <>
struct Codec<Bits64> {
  static std::string Type() { return "bigint"; }
  static Bits64 Read(const Napi::Value& value, const std::string& path) {
    if (!value.IsBigInt()) Refuse(value.Env(), path, "a bigint");
    bool lossless = false;
    const uint64_t bits = value.As<Napi::BigInt>().Uint64Value(&lossless);
    if (!lossless) Refuse(value.Env(), path, "an unsigned 64-bit bigint");
    return {bits};
  }
};

template <>
struct Codec<std::string> {
  static std::string Type() { return "string"; }
  static std::string Read(const Napi::Value& value, const std::string& path) {
    if (!value.IsString()) Refuse(value.Env(), path, "a string");
    return value.As<Napi::String>().Utf8Value();
  }
  static Napi::Value Write(Napi::Env env, const std::string& value) {
    return Napi::String::New(env, value);
  }
};

template <typename T>
struct Codec<std::vector<T>> {
  static std::string Type() {
    const std::string inner = Codec<T>::Type();
    const bool is_list = inner.starts_with("readonly ");
    return "readonly " + (is_list ? "(" + inner + ")" : inner) + "[]";
  }
  static std::vector<T> Read(const Napi::Value& value, const std::string& path) {
    if (!value.IsArray()) Refuse(value.Env(), path, "an array");
    const auto array = value.As<Napi::Array>();
    std::vector<T> list;
    for (uint32_t i = 0; i < array.Length(); ++i) {
      list.push_back(Codec<T>::Read(array[i], path + "[" + std::to_string(i) + "]"));
    }
    return list;
  }
  static Napi::Value Write(Napi::Env env, std::span<const T> list) {
    Napi::Array array = Napi::Array::New(env, list.size());
    for (uint32_t i = 0; i < list.size(); ++i) array.Set(i, Codec<T>::Write(env, list[i]));
    return array;
  }
};

template <typename T, size_t kCount>
struct Codec<T[kCount]> : Codec<std::vector<T>> {};

template <typename T>
struct Codec<std::optional<T>> {
  static std::string Type() { return Codec<T>::Type() + " | null"; }
  static std::optional<T> Read(const Napi::Value& value, const std::string& path) {
    if (value.IsNull()) return std::nullopt;
    return Codec<T>::Read(value, path);
  }
  static Napi::Value Write(Napi::Env env, const std::optional<T>& value) {
    return value ? Codec<T>::Write(env, *value) : env.Null();
  }
};

// Copied on the way in; on the way out it is the array itself.
template <>
struct Codec<Napi::Float32Array> {
  static std::string Type() { return "Float32Array"; }
  static Napi::Value Write(Napi::Env, const Napi::Float32Array& array) { return array; }
};

struct Floats {
  std::vector<float> values;
};

template <>
struct Codec<Floats> {
  static std::string Type() { return "Float32Array"; }
  static Floats Read(const Napi::Value& value, const std::string& path) {
    if (!value.IsTypedArray() ||
        value.As<Napi::TypedArray>().TypedArrayType() != napi_float32_array) {
      Refuse(value.Env(), path, "a Float32Array");
    }
    const auto array = value.As<Napi::Float32Array>();
    return {{array.Data(), array.Data() + array.ElementLength()}};
  }
  static Napi::Value Write(Napi::Env env, const Floats& floats) {
    Napi::Float32Array array = Napi::Float32Array::New(env, floats.values.size());
    std::copy(floats.values.begin(), floats.values.end(), array.Data());
    return array;
  }
};

template <typename T>
  requires Named<T>
struct Codec<T> {
  static std::string Type() { return kNames<T>.type; }
  static T Read(const Napi::Value& value, const std::string& path) {
    const std::string name = value.IsString() ? value.As<Napi::String>().Utf8Value() : "";
    for (const auto& [text, option] : kNames<T>.names) {
      if (name == text) return option;
    }
    Refuse(value.Env(), path, "one of " + UnionOf<T>());
  }
  static Napi::Value Write(Napi::Env env, T value) {
    for (const auto& [text, option] : kNames<T>.names) {
      if (option == value) return Napi::String::New(env, text);
    }
    return env.Null();  // a value without a name does not cross the border
  }
};

template <typename T>
  requires Tabled<T>
struct Codec<T> {
  static std::string Type() { return kTable<T>.type; }

  static T Read(const Napi::Value& value, const std::string& path) {
    if (!value.IsObject()) Refuse(value.Env(), path, "an object");
    const auto object = value.As<Napi::Object>();
    T result{};
    const auto read = [&](const auto& field) {
      auto& place = std::invoke(field.get, result);
      const std::string name = path + "." + field.name;
      const Napi::Value given = object.Get(field.name);
      if (given.IsUndefined()) Refuse(value.Env(), name, "set");
      place = Codec<std::remove_reference_t<decltype(place)>>::Read(given, name);
    };
    std::apply([&](const auto&... field) { (read(field), ...); }, kTable<T>.fields);
    return result;
  }

  static Napi::Value Write(Napi::Env env, const T& value) {
    Napi::Object object = Napi::Object::New(env);
    const auto write = [&](const auto& field) {
      object.Set(field.name, Codec<FieldType<T, decltype(field.get)>>::Write(
                                 env, std::invoke(field.get, value)));
    };
    std::apply([&](const auto&... field) { (write(field), ...); }, kTable<T>.fields);
    return object;
  }
};

}  // namespace gnnd::node
