#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/sample/walk.h"

namespace gnnd {

// The most visited nodes of a row by comparing all its visits with each other, without branches
// that depend on them: a node's key is at its first visit, and a key's place is how many are above
// it. `size` is a multiple of kWalkLanes up to kMaxPairVisits. Compare::Equal and ::Above give bit
// i for element i.
template <typename Compare>
uint32_t TopVisits(const uint32_t* visits, uint32_t size, uint32_t most, uint32_t* nodes,
                   float* counts) {
  alignas(64) uint32_t keys[kMaxPairVisits];
  uint32_t distinct = 0;
  for (uint32_t i = 0; i < size; ++i) {
    const uint64_t same = Compare::Equal(visits, size, visits[i]);
    const bool first = visits[i] != kNoVisit && static_cast<uint32_t>(std::countr_zero(same)) == i;
    const auto times = static_cast<uint32_t>(std::popcount(same));
    keys[i] = first ? times << 16 | (0xFFFF - i) : 0;
    distinct += first ? 1 : 0;
  }
  uint32_t ordered_nodes[kMaxPairVisits + 1];
  float ordered_counts[kMaxPairVisits + 1];
  for (uint32_t i = 0; i < size; ++i) {
    const auto above = static_cast<uint32_t>(std::popcount(Compare::Above(keys, size, keys[i])));
    const uint32_t place = keys[i] == 0 ? kMaxPairVisits : above;
    ordered_nodes[place] = visits[i];
    ordered_counts[place] = static_cast<float>(keys[i] >> 16);
  }
  const uint32_t found = std::min(distinct, most);
  std::copy_n(ordered_nodes, found, nodes);
  std::copy_n(ordered_counts, found, counts);
  return found;
}

}  // namespace gnnd
