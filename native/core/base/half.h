#pragma once

#include <bit>
#include <cstdint>

// IEEE 754 binary16: a type to store numbers in, not to compute with. Every one of its values is a
// binary32, so widening (core/vec/convert.h does many at once) is exact.

namespace gnnd {

enum class Half : uint16_t {};  // the bits

inline constexpr uint32_t kHalfExponentBits = 0x7C00;  // all set: infinite or not a number

// A signalling NaN becomes quiet, as with the processor's instruction.
constexpr float ToFloat(Half half) {
  const auto bits = static_cast<uint32_t>(half);
  const uint32_t sign = (bits & 0x8000) << 16;
  const uint32_t exponent = (bits & kHalfExponentBits) >> 10;
  const uint32_t fraction = bits & 0x3FF;
  if (exponent == 0) {  // fraction * 2^-24, exact in float32
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  if (exponent == 31) {
    const uint32_t quiet = fraction == 0 ? 0 : 0x400000;
    return std::bit_cast<float>(sign | 0x7F800000 | quiet | fraction << 13);
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

// To the nearest, ties to even; beyond 65504 (from 65520 on) infinite. A NaN stays one.
constexpr Half ToHalf(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return static_cast<Half>(sign | 0x7E00);
  if (magnitude >= 0x477FF000) return static_cast<Half>(sign | kHalfExponentBits);
  if (magnitude < 0x38800000) {  // subnormal: the sum's last bits are the value in units of 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<Half>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000));
  }
  const uint32_t odd = (magnitude >> 13) & 1;
  return static_cast<Half>(sign | ((magnitude - 0x38000000 + 0xFFF + odd) >> 13));
}

}  // namespace gnnd
