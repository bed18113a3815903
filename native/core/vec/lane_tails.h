#pragma once

#include "core/vec/lane_masks.h"

// Loads of a vector's first lanes, and compression, lane by lane: for sets without instructions for
// them. A set's header, which defines WidenPart() (float16 to float32), includes this last.

namespace gnnd::GNND_SET {

// `count` is 1 to 16.
struct Tail {
  uint32_t count;
};
GNND_VEC Tail TailOf(uint32_t count) { return {count}; }
GNND_VEC Mask16 LanesOf(Tail tail) { return LanesOf((1U << tail.count) - 1U); }

GNND_VEC F32x16 Load(const Half* from) {
  F32x16 lanes;
  GNND_PARTS lanes.part[p] = WidenPart(from + p * kPartLanes, kPartLanes);
  return lanes;
}
GNND_VEC F32x16 Load(const Half* from, Tail tail) {
  F32x16 lanes;
  GNND_PARTS {
    const uint32_t before = p * kPartLanes;
    const uint32_t left = tail.count > before ? tail.count - before : 0;
    lanes.part[p] = WidenPart(from + before, left < kPartLanes ? left : kPartLanes);
  }
  return lanes;
}

// Writes the masked lanes one behind the other, touching up to 16 elements; returns their number.
GNND_VEC uint32_t CompressStore(uint32_t* to, const Mask16& mask, const U32x16& a) {
  uint32_t count = 0;
  GNND_PARTS {
    for (uint32_t i = 0; i < kPartLanes; ++i) {
      to[count] = a.part[p][i];
      count += mask.part[p][i] & 1U;
    }
  }
  return count;
}

}  // namespace gnnd::GNND_SET
