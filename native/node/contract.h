#pragma once

#include <napi.h>

#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "node/convert.h"
#include "node/run_on_thread.h"

// The exports of an addon, subject by subject: functions made from plain C++ ones (their types
// decide how arguments are read and results written), and the text that declares all of it to
// TypeScript, which `npm run build:contract` writes to src/native/gen.

namespace gnnd::node {

// Work for a thread of its own; JavaScript gets a promise.
template <typename T>
struct Task {
  std::function<Result<T>()> work;
};
template <>
struct Task<void> {
  std::function<Status()> work;
};

// How a function's result reaches JavaScript.
template <typename T>
struct Return {
  static std::string Type() { return Codec<T>::Type(); }
  static Napi::Value Convert(Napi::Env env, const T& value) { return Codec<T>::Write(env, value); }
};
template <>
struct Return<void> {
  static std::string Type() { return "void"; }
};
template <>
struct Return<Status> {
  static std::string Type() { return "void"; }
  static Napi::Value Convert(Napi::Env env, const Status& status) {
    ThrowUnlessOk(env, status);
    return env.Undefined();
  }
};
template <typename T>
struct Return<Result<T>> {
  static std::string Type() { return Codec<T>::Type(); }
  static Napi::Value Convert(Napi::Env env, const Result<T>& result) {
    ThrowUnlessOk(env, result.status());
    return Codec<T>::Write(env, *result);
  }
};
template <typename T>
struct Return<Task<T>> {
  static std::string Type() { return "Promise<" + Codec<T>::Type() + ">"; }
  static Napi::Value Convert(Napi::Env env, const Task<T>& task) {
    return RunOnThread<T>(env, task.work,
                          [](Napi::Env js, T& value) { return Codec<T>::Write(js, value); });
  }
};
template <>
struct Return<Task<void>> {
  static std::string Type() { return "Promise<void>"; }
  static Napi::Value Convert(Napi::Env env, const Task<void>& task) {
    return RunOnThread(env, task.work);
  }
};

// The functions and types of one subject.
class Subject {
 public:
  // `name` is the name of the file in src/native/gen.
  Subject(Napi::Env env, Napi::Object exports, const char* name)
      : env_(env), exports_(exports), name_(name) {}

  template <Tabled T>
  Subject& Struct() {
    std::string text = Comment(kTable<T>.doc, "") + "export interface " + kTable<T>.type + " {\n";
    const auto add = [&text](const auto& field) {
      text += Comment(field.doc, "  ") + "  readonly " + field.name + ": " +
              Codec<FieldType<T, decltype(field.get)>>::Type() + ";\n";
    };
    std::apply([&add](const auto&... field) { (add(field), ...); }, kTable<T>.fields);
    types_ += text + "}\n\n";
    return *this;
  }

  // Laid out like the formatter's: alternatives that do not fit a line are on lines of their own.
  template <Named T>
  Subject& Enum() {
    const std::string head = "export type " + std::string(kNames<T>.type) + " =";
    const bool fits = head.size() + UnionOf<T>().size() + 2 <= 100;
    types_ += head + (fits ? " " + UnionOf<T>() : "\n  | " + UnionOf<T>("\n  | ")) + ";\n\n";
    return *this;
  }

  Subject& Text(const std::string& text) {
    types_ += text + "\n";
    return *this;
  }

  // Exports a C++ function under its name in JavaScript; `arguments` has one word for each.
  template <typename R, typename... A>
  Subject& Function(const char* name, R (*function)(A...), std::vector<const char*> arguments,
                    const char* doc = nullptr) {
    Declare<R, std::decay_t<A>...>(name, arguments, doc);
    exports_.Set(name, Napi::Function::New(env_, [=](const Napi::CallbackInfo& info) {
                   return Call<R, std::decay_t<A>...>(info, function, arguments,
                                                      std::index_sequence_for<A...>());
                 }));
    return *this;
  }

  // The text of the file that declares all this.
  std::string Declaration() const {
    std::string title(name_);
    title[0] = static_cast<char>(title[0] - 'a' + 'A');
    return types_ + "export interface " + title + "Functions {\n" + functions_ + "}\n";
  }
  const char* name() const { return name_; }

 private:
  static std::string Comment(const char* doc, const std::string& indent) {
    return doc == nullptr ? "" : indent + "/** " + doc + " */\n";
  }

  template <typename R, typename... A>
  void Declare(const char* name, const std::vector<const char*>& arguments, const char* doc) {
    const std::vector<std::string> types = {Codec<A>::Type()...};
    std::string list;
    for (size_t i = 0; i < types.size(); ++i) {
      list += (i == 0 ? "" : ", ") + std::string(arguments.at(i)) + ": " + types[i];
    }
    functions_ += Comment(doc, "  ") + "  " + name + "(" + list + "): " + Return<R>::Type() + ";\n";
  }

  template <typename R, typename... A, typename F, size_t... kAt>
  static Napi::Value Call(const Napi::CallbackInfo& info, F function,
                          [[maybe_unused]] const std::vector<const char*>& arguments,
                          std::index_sequence<kAt...>) {
    // Braces evaluate in order, so that an error names the first wrong argument.
    std::tuple<A...> values{Codec<A>::Read(info[kAt], arguments[kAt])...};
    if constexpr (std::is_void_v<R>) {
      std::apply(function, std::move(values));
      return info.Env().Undefined();
    } else {
      return Return<R>::Convert(info.Env(), std::apply(function, std::move(values)));
    }
  }

  Napi::Env env_;
  Napi::Object exports_;
  const char* name_;
  std::string types_;
  std::string functions_;
};

}  // namespace gnnd::node
