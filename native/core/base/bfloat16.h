#pragma once

#include <bit>
#include <cstdint>

// bfloat16, the upper half of a binary32: a type to store numbers in, not to compute with. Widening
// is exact; narrowing rounds to the nearest, ties to even, once for each number that is stored.

namespace gnnd {

enum class Bfloat16 : uint16_t {};  // the bits

inline constexpr uint16_t kBfloat16Nan = 0x7FC0;

constexpr float ToFloat(Bfloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

constexpr Bfloat16 ToBfloat16(float value) {
  if (value != value) return Bfloat16{kBfloat16Nan};
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<Bfloat16>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

}  // namespace gnnd
