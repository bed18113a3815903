#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

// Describes each struct and each set of names that crosses the border, once: its table reads,
// checks and writes it (codec.h) and declares it in src/native/gen (contract.h).

namespace gnnd::node {

// One field: its name in JavaScript, its place (a pointer to a member, or a function from the
// struct to the field or, if it is only written, to its value), and a sentence if the name does not
// say it all.
template <typename Get>
struct Field {
  const char* name;
  Get get;
  const char* doc = nullptr;
};
template <typename Get>
Field(const char*, Get) -> Field<Get>;
template <typename Get>
Field(const char*, Get, const char*) -> Field<Get>;

template <typename... Gets>
struct StructTable {
  const char* type;  // the type in TypeScript
  const char* doc;
  std::tuple<Field<Gets>...> fields;
};

template <typename... Gets>
constexpr StructTable<Gets...> StructOf(const char* type, const char* doc, Field<Gets>... fields) {
  return {type, doc, {fields...}};
}
template <typename... Gets>
constexpr StructTable<Gets...> StructOf(const char* type, Field<Gets>... fields) {
  return {type, nullptr, {fields...}};
}
// The fields of a base class or message, followed by those of the struct itself.
template <typename... BaseGets, typename... Gets>
constexpr StructTable<BaseGets..., Gets...> Extending(const std::tuple<Field<BaseGets>...>& base,
                                                      const char* type, Field<Gets>... fields) {
  return {type, nullptr, std::tuple_cat(base, std::tuple{fields...})};
}

template <typename Enum, size_t kCount>
struct NameTable {
  const char* type;
  std::array<std::pair<const char*, Enum>, kCount> names;
};

template <typename Enum, size_t kCount>
constexpr NameTable<Enum, kCount> NamesOf(const char* type,
                                          const std::pair<const char*, Enum> (&names)[kCount]) {
  return {type, std::to_array(names)};
}

// Specialised for each struct that crosses the border.
struct NotThere {};
template <typename Struct>
inline constexpr NotThere kTable;
template <typename Enum>
inline constexpr NotThere kNames;

template <typename T>
concept Tabled = !std::is_same_v<decltype(kTable<T>), const NotThere>;
template <typename T>
concept Named = !std::is_same_v<decltype(kNames<T>), const NotThere>;

// The type of a field.
template <typename Struct, typename Get>
using FieldType = std::remove_cvref_t<std::invoke_result_t<Get, const Struct&>>;

// A TypeScript union: 'A' | 'B'.
template <typename Enum>
std::string UnionOf(const std::string& between = " | ") {
  std::string text;
  for (const auto& [name, value] : kNames<Enum>.names) {
    text += (text.empty() ? "'" : between + "'") + name + "'";
  }
  return text;
}

}  // namespace gnnd::node
