#include "core/sample/walk.h"

#include <algorithm>

namespace gnnd {

VisitCounter::VisitCounter(uint32_t max_visits)
    : visited_(max_visits + 1),
      keys_(max_visits + 1),
      sorted_(max_visits > kMaxPairVisits ? max_visits : 0) {}

uint32_t VisitCounter::Top(const uint32_t* visits, uint32_t size, uint32_t most, uint32_t* nodes,
                           float* counts) {
  uint32_t made = 0;
  for (uint32_t i = 0; i < size; ++i) {
    visited_[made] = visits[i];
    made += visits[i] == kNoVisit ? 0 : 1;
  }
  if (made <= kMaxPairVisits) {
    CountByPairs(made);
  } else {
    CountBySorting(made);
  }
  // Keys are distinct; the largest is the next neighbour. The key of a first visit is never 0.
  uint32_t found = 0;
  while (found < most) {
    uint32_t largest = 0;
    for (uint32_t i = 0; i < made; ++i) largest = std::max(largest, keys_[i]);
    if (largest == 0) break;
    const uint32_t place = kVisitPlaceMask - (largest & kVisitPlaceMask);
    keys_[place] = 0;
    nodes[found] = visited_[place];
    counts[found] = static_cast<float>(largest >> 16);
    ++found;
  }
  return found;
}

void VisitCounter::CountByPairs(uint32_t size) {
  const uint32_t* visited = visited_.data();
  for (uint32_t i = 0; i < size; ++i) {
    uint32_t count = 0;
    uint32_t earlier = 0;
    for (uint32_t j = 0; j < i; ++j) earlier += visited[j] == visited[i] ? 1 : 0;
    for (uint32_t j = i; j < size; ++j) count += visited[j] == visited[i] ? 1 : 0;
    keys_[i] = earlier == 0 ? count << 16 | (kVisitPlaceMask - i) : 0;
  }
}

void VisitCounter::CountBySorting(uint32_t size) {
  for (uint32_t i = 0; i < size; ++i) sorted_[i] = uint64_t{visited_[i]} << 32 | i;
  std::sort(sorted_.begin(), sorted_.begin() + size);
  std::fill_n(keys_.begin(), size, 0);
  for (uint32_t begin = 0; begin < size;) {
    uint32_t end = begin;
    while (end < size && sorted_[end] >> 32 == sorted_[begin] >> 32) ++end;
    const auto first = static_cast<uint32_t>(sorted_[begin]);
    keys_[first] = (end - begin) << 16 | (kVisitPlaceMask - first);
    begin = end;
  }
}

}  // namespace gnnd
