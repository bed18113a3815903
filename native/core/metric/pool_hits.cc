#include "core/metric/pool_hits.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

namespace gnnd {

std::array<uint64_t, kNumHitRanks> PoolHits(const ScoreTable& table) {
  constexpr uint64_t kMost = kHitRanks[kNumHitRanks - 1];
  std::vector<float> best;  // a heap with the least in front
  for (uint64_t i = 0; i < table.scores.size(); ++i) {
    if (table.outcomes[i] != Outcome::kNegative) continue;
    if (best.size() == kMost) {
      if (table.scores[i] <= best.front()) continue;
      std::ranges::pop_heap(best, std::greater());
      best.pop_back();
    }
    best.push_back(table.scores[i]);
    std::ranges::push_heap(best, std::greater());
  }
  std::ranges::sort(best, std::greater());
  std::array<uint64_t, kNumHitRanks> hits{};
  for (size_t k = 0; k < kNumHitRanks; ++k) {
    const bool has_bar = best.size() >= kHitRanks[k];
    for (uint64_t i = 0; i < table.scores.size(); ++i) {
      if (table.outcomes[i] != Outcome::kPositive) continue;
      hits[k] += !has_bar || table.scores[i] > best[kHitRanks[k] - 1] ? 1 : 0;
    }
  }
  return hits;
}

}  // namespace gnnd
