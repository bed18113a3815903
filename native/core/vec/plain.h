#pragma once

// The functions of a set's header lane by lane, with the compiler's baseline only. See vec.h.

#define GNND_PART_LANES 4
#include "core/vec/lane_masks.h"

namespace gnnd::plain {

// Vectors Lanes16<float> that a loop may hold at once.
constexpr uint32_t kHeldVectors = 2;

GNND_VEC uint32_t Bits(const Mask16& mask) {
  uint32_t bits = 0;
  GNND_PARTS {
    for (uint32_t i = 0; i < kPartLanes; ++i) {
      bits |= (mask.part[p][i] & 1U) << (p * kPartLanes + i);
    }
  }
  return bits;
}

GNND_VEC F32x16::Part WidenPart(const Half* from, uint32_t lanes) {
  F32x16::Part part{};
  for (uint32_t i = 0; i < lanes; ++i) part[i] = ToFloat(from[i]);
  return part;
}

// 32-bit numbers in 64 bits each, the width of the processor's own multiplier. The high halves are
// never read.
using WidePart = uint64_t;
constexpr uint32_t kWideLanes = 1;  // in a WidePart
constexpr uint32_t kWideParts = 16;
constexpr uint32_t kWideUnroll = 1;
struct Wide {
  WidePart part[kWideParts];
};
using WideProduct = WidePart;

GNND_VEC WidePart WideOf(uint32_t value) { return value; }
GNND_VEC WidePart WideLaneNumbers() { return 0; }
GNND_VEC WideProduct Multiply(WidePart a, WidePart b) {
  return (a & 0xFFFFFFFFU) * (b & 0xFFFFFFFFU);
}
GNND_VEC WidePart HighOf(WideProduct product) { return product >> 32; }
GNND_VEC WidePart LowOf(WideProduct product) { return product; }
GNND_VEC WidePart Xor3(WidePart a, WidePart b, WidePart c) { return a ^ b ^ c; }
// Bit 0: the number is not below the bound.
GNND_VEC uint32_t NotBelowBits(WidePart a, uint32_t bound) {
  return static_cast<uint32_t>(a) >= bound ? 1 : 0;
}

GNND_VEC Wide Widen(const U32x16& a) {
  uint32_t lanes[kLanes];
  Store(lanes, a);
  Wide wide;
  for (uint32_t i = 0; i < kLanes; ++i) wide.part[i] = lanes[i];
  return wide;
}
GNND_VEC U32x16 Narrow(const Wide& a) {
  uint32_t lanes[kLanes];
  for (uint32_t i = 0; i < kLanes; ++i) lanes[i] = static_cast<uint32_t>(a.part[i]);
  return Load(lanes);
}
// The high 32 bits of the products.
GNND_VEC U32x16 MultiplyHigh(const Wide& a, const U32x16& b) {
  uint32_t lanes[kLanes];
  Store(lanes, b);
  for (uint32_t i = 0; i < kLanes; ++i) {
    lanes[i] = static_cast<uint32_t>(Multiply(a.part[i], lanes[i]) >> 32);
  }
  return Load(lanes);
}

}  // namespace gnnd::plain

#include "core/vec/lane_tails.h"
