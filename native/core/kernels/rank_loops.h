#pragma once

#include <cstdint>

#include "core/vec/dispatch.h"

namespace gnnd {

// Compares scores of nodes with those of links, as columns of a block.
struct ComparedBlock {
  const float* scores = nullptr;  // [nodes, links]
  const float* own = nullptr;     // [links]
  uint64_t nodes = 0;
  uint64_t links = 0;
  // [links]: how many of a link's scores are above its own, and how many are the same; set, not
  // added to.
  uint32_t* greater = nullptr;
  uint32_t* equal = nullptr;
};
struct RankLoops {
  // For links [begin, end).
  void (*compare)(const ComparedBlock& block, uint32_t begin, uint32_t end);
};
GNND_DECLARE_LOOPS(RankLoops, kRankLoops);

}  // namespace gnnd
