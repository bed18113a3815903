#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/half.h"

namespace gnnd {

// Tests the bits: unlike std::isfinite, this vectorises.
inline bool IsFinite(float value) {
  constexpr uint32_t kExponent = 0x7F800000;
  return (std::bit_cast<uint32_t>(value) & kExponent) != kExponent;
}

inline bool IsFinite(Half value) {
  return (static_cast<uint32_t>(value) & kHalfExponentBits) != kHalfExponentBits;
}

// Whether no value is infinite or not a number. Reads at the speed of memory.
inline bool AllFinite(std::span<const float> values) {
  constexpr size_t kPart = 4096;  // so that a loop without branches ends soon after a bad one
  for (size_t from = 0; from < values.size(); from += kPart) {
    const std::span<const float> part = values.subspan(from, std::min(kPart, values.size() - from));
    uint32_t bad = 0;
    for (const float value : part) bad |= IsFinite(value) ? 0 : 1;
    if (bad != 0) return false;
  }
  return true;
}

}  // namespace gnnd
