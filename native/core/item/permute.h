#pragma once

#include <cstdint>

#include "core/draw/permutation.h"
#include "core/vec/dispatch.h"

// PermutedIndex (permutation.h) for a range of positions, with a vector lane per position.

namespace gnnd {

struct PermuteLoops {
  // out[i] = PermutedIndex(key, epoch, n, first + i) for i < count; first + count <= n.
  void (*permute)(PhiloxKey key, uint32_t epoch, uint32_t n, uint32_t first, uint32_t count,
                  uint32_t* out);
};
GNND_DECLARE_LOOPS(PermuteLoops, kPermuteLoops);

}  // namespace gnnd
