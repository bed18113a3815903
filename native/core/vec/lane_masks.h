#pragma once

#include <cstdint>

#include "core/vec/lanes.h"

// Masks for sets without mask registers: a lane is all ones or all zeros. A set's header includes
// this and adds Bits(), for which the compiler finds no instruction.

namespace gnnd::GNND_SET {

struct Mask16 {
  U32x16::Part part[kParts];
};

constexpr uint32_t kLaneBits[kLanes] = {1U << 0,  1U << 1,  1U << 2,  1U << 3, 1U << 4,  1U << 5,
                                        1U << 6,  1U << 7,  1U << 8,  1U << 9, 1U << 10, 1U << 11,
                                        1U << 12, 1U << 13, 1U << 14, 1U << 15};

GNND_VEC Mask16 NoLanes() { return Mask16{}; }

GNND_VEC Mask16 Equal(const U32x16& a, const U32x16& b) {
  Mask16 mask;
  GNND_PARTS mask.part[p] = reinterpret_cast<U32x16::Part>(a.part[p] == b.part[p]);
  return mask;
}

// a < b
GNND_VEC Mask16 Below(const U32x16& a, const U32x16& b) {
  Mask16 mask;
  GNND_PARTS mask.part[p] = reinterpret_cast<U32x16::Part>(a.part[p] < b.part[p]);
  return mask;
}

// Mask of the lanes that are above 0 or NaN.
GNND_VEC Mask16 NotAtMostZero(const F32x16& a) {
  Mask16 mask;
  GNND_PARTS mask.part[p] = ~reinterpret_cast<U32x16::Part>(a.part[p] <= F32x16::Part{});
  return mask;
}

// Mask of lane i for every bit i that is set.
GNND_VEC Mask16 LanesOf(uint32_t bits) {
  const U32x16 mine = Load(kLaneBits);
  Mask16 mask;
  GNND_PARTS mask.part[p] = reinterpret_cast<U32x16::Part>((mine.part[p] & bits) == mine.part[p]);
  return mask;
}

GNND_VEC Mask16 operator|(Mask16 a, const Mask16& b) {
  GNND_PARTS a.part[p] |= b.part[p];
  return a;
}

GNND_VEC Mask16 operator&(Mask16 a, const Mask16& b) {
  GNND_PARTS a.part[p] &= b.part[p];
  return a;
}

GNND_VEC U32x16 Select(const Mask16& mask, const U32x16& yes, const U32x16& no) {
  U32x16 lanes;
  GNND_PARTS lanes.part[p] = no.part[p] ^ ((no.part[p] ^ yes.part[p]) & mask.part[p]);
  return lanes;
}

// Keeps the masked lanes; the others become 0.
GNND_VEC F32x16 Keep(const Mask16& mask, const F32x16& a) {
  F32x16 lanes;
  GNND_PARTS lanes.part[p] =
      reinterpret_cast<F32x16::Part>(reinterpret_cast<U32x16::Part>(a.part[p]) & mask.part[p]);
  return lanes;
}

}  // namespace gnnd::GNND_SET
