#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "node/convert.h"

// How fields of a job spec become members of options, whatever their types.

namespace gnnd::node {

inline void ReadSpecField(const Fields& fields, const char* key, double& member) {
  member = fields.Double(key);
}

inline void ReadSpecField(const Fields& fields, const char* key, float& member) {
  member = static_cast<float>(fields.Double(key));
}

inline void ReadSpecField(const Fields& fields, const char* key, uint32_t& member) {
  member = fields.Uint32(key);
}

inline void ReadSpecField(const Fields& fields, const char* key, bool& member) {
  member = fields.Bool(key);
}

// Enums have the numbers of their namesakes in the proto; a name that has none becomes 0, which no
// option has and whatever checks the option refuses.
template <typename Enum>
void ReadSpecName(const Fields& fields, const char* key, Enum& member,
                  std::initializer_list<std::pair<const char*, uint32_t>> names) {
  const std::string given = fields.String(key);
  member = Enum{};
  for (const auto& [name, number] : names) {
    if (given == name) member = static_cast<Enum>(number);
  }
}

}  // namespace gnnd::node
