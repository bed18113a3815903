#pragma once

#include <arm_neon.h>

// AArch64's Advanced SIMD (NEON): four registers for sixteen lanes. See vec.h.

#define GNND_PART_LANES 4
#include "core/vec/lane_masks.h"

namespace gnnd::neon {

// Vectors Lanes16<float> that a loop may hold at once: half of the registers.
constexpr uint32_t kHeldVectors = 4;

GNND_VEC uint32x4_t Register(U32x16::Part a) { return (uint32x4_t)a; }
GNND_VEC U32x16::Part Lanes(uint32x4_t a) { return (U32x16::Part)a; }

GNND_VEC uint32_t Bits(const Mask16& mask) {
  constexpr U32x16::Part kBits = {1, 2, 4, 8};
  uint32_t bits = 0;
  GNND_PARTS bits |= vaddvq_u32(Register(mask.part[p] & kBits)) << p * kPartLanes;
  return bits;
}

GNND_VEC F32x16::Part WidenPart(const Half* from, uint32_t lanes) {
  uint16_t halves[kPartLanes] = {};
  std::memcpy(halves, from, lanes * sizeof(Half));
  return (F32x16::Part)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(halves)));
}

// Sixteen 32-bit numbers in their normal order: the multiplier takes halves of registers and gives
// whole ones, which two shuffles split into low and high halves of the products.
typedef U32x16::Part WidePart;
constexpr uint32_t kWideLanes = 4;  // in a WidePart
constexpr uint32_t kWideParts = 4;
constexpr uint32_t kWideUnroll = 4;
struct Wide {
  WidePart part[kWideParts];
};
struct WideProduct {
  WidePart low;
  WidePart high;
};

GNND_VEC WidePart WideOf(uint32_t value) { return WidePart{} + value; }
GNND_VEC WidePart WideLaneNumbers() { return WidePart{0, 1, 2, 3}; }
GNND_VEC WideProduct Multiply(WidePart a, WidePart b) {
  const uint32x4_t x = Register(a);
  const uint32x4_t y = Register(b);
  const uint32x4_t first = vreinterpretq_u32_u64(vmull_u32(vget_low_u32(x), vget_low_u32(y)));
  const uint32x4_t last = vreinterpretq_u32_u64(vmull_high_u32(x, y));
  return {Lanes(vuzp1q_u32(first, last)), Lanes(vuzp2q_u32(first, last))};
}
GNND_VEC WidePart HighOf(const WideProduct& product) { return product.high; }
GNND_VEC WidePart LowOf(const WideProduct& product) { return product.low; }
GNND_VEC WidePart Xor3(WidePart a, WidePart b, WidePart c) { return a ^ b ^ c; }
// Bit i: lane i is not below the bound.
GNND_VEC uint32_t NotBelowBits(WidePart a, uint32_t bound) {
  constexpr U32x16::Part kBits = {1, 2, 4, 8};
  return vaddvq_u32(Register(reinterpret_cast<WidePart>(a >= bound) & kBits));
}

GNND_VEC Wide Widen(const U32x16& a) {
  Wide wide;
  GNND_PARTS wide.part[p] = a.part[p];
  return wide;
}
GNND_VEC U32x16 Narrow(const Wide& a) {
  U32x16 lanes;
  GNND_PARTS lanes.part[p] = a.part[p];
  return lanes;
}
// The high 32 bits of the products.
GNND_VEC U32x16 MultiplyHigh(const Wide& a, const U32x16& b) {
  U32x16 lanes;
  GNND_PARTS lanes.part[p] = Multiply(a.part[p], b.part[p]).high;
  return lanes;
}

}  // namespace gnnd::neon

#include "core/vec/lane_tails.h"
