#include "core/sample/labor.h"
#include "core/vec/vec.h"

namespace gnnd::GNND_SET {
namespace {

GNND_VEC U32x16 Mix(const U32x16& ids, const U32x16& k0, const U32x16& k1) {
  U32x16 x = ids ^ k0;
  x = (x ^ x >> 16) * Broadcast(kLaborMul0);
  x = ((x ^ x >> 15) + k1) * Broadcast(kLaborMul1);
  x = (x ^ x >> 16) * Broadcast(kLaborMul2);
  return x ^ x >> 15;
}

// The ids' numbers. kMixed: some nodes have the next window's number already.
template <bool kMixed>
GNND_VEC U32x16 Numbers(const LaborKeys& keys, const U32x16& ids) {
  const U32x16 k0 = Broadcast(keys.now.k0);
  const U32x16 k1 = Broadcast(keys.now.k1);
  if (!kMixed) return Mix(ids, k0, k1);
  const U32x16 at = (ids ^ Broadcast(keys.switch_key)) * Broadcast(kLaborMul2);
  const Mask16 switched = Below(at, Broadcast(keys.switch_below));
  return Mix(ids, Select(switched, Broadcast(keys.next.k0), k0),
             Select(switched, Broadcast(keys.next.k1), k1));
}

template <bool kMixed>
uint32_t FilterAs(LaborKeys keys, uint32_t threshold, const uint32_t* ids, uint32_t size,
                  uint32_t* kept) {
  const U32x16 bound = Broadcast(threshold);
  uint32_t count = 0;
  uint32_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const U32x16 some = Load(ids + i);
    count += CompressStore(kept + count, Below(Numbers<kMixed>(keys, some), bound), some);
  }
  if (i == size) return count;
  const Tail tail = TailOf(size - i);
  const U32x16 rest = Load(ids + i, tail);
  const Mask16 below = Below(Numbers<kMixed>(keys, rest), bound) & LanesOf(tail);
  return count + CompressStore(kept + count, below, rest);
}

uint32_t Filter(const LaborKeys& keys, uint32_t threshold, const uint32_t* ids, uint32_t size,
                uint32_t* kept) {
  if (keys.switch_below == 0) return FilterAs<false>(keys, threshold, ids, size, kept);
  return FilterAs<true>(keys, threshold, ids, size, kept);
}

}  // namespace

const LaborLoops kLaborLoops = {Filter};

}  // namespace gnnd::GNND_SET
