#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

#include "core/metric/metric.h"

// How links are ranked among negatives: ones that are scored higher count before the link, ones
// that are scored the same count half, which is the mean of the best and the worst rank that the
// link could have, as OGB's evaluator of link prediction takes it.

namespace gnnd {

// The ranks up to which a link counts as found, in the order of Metric::kHits1 and those after it.
inline constexpr uint32_t kHitRanks[] = {1, 3, 10, 20, 50, 100};
inline constexpr size_t kNumHitRanks = std::size(kHitRanks);

// A link's negatives, by how their scores compare with its own.
struct LinkRank {
  uint64_t greater = 0;
  uint64_t equal = 0;

  double rank() const {
    return 1 + static_cast<double>(greater) + 0.5 * static_cast<double>(equal);
  }
};

// Adds a link to counts of those found, [kNumHitRanks], and to the sum of 1 / rank.
inline void CountRank(const LinkRank& link, std::span<uint64_t> hits, double* reciprocals) {
  const double rank = link.rank();
  for (size_t k = 0; k < kNumHitRanks; ++k) hits[k] += rank <= kHitRanks[k] ? 1 : 0;
  *reciprocals += 1 / rank;
}

inline Metric HitsMetric(size_t k) {
  return static_cast<Metric>(static_cast<size_t>(Metric::kHits1) + k);
}

}  // namespace gnnd
