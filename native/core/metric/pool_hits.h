#pragma once

#include <array>
#include <cstdint>

#include "core/metric/link_rank.h"
#include "core/metric/ranking.h"

namespace gnnd {

// How many links are found at each of kHitRanks where all of them share one pool of negatives, as
// OGB's evaluator counts for ogbl-collab, -ddi and -ppa: those whose score is above that of the
// K-th best of the pool, ties not; all of them where the pool has fewer than K. Links are the
// positives of a table of one column, the pool its negatives. Takes a heap of the best negatives.
std::array<uint64_t, kNumHitRanks> PoolHits(const ScoreTable& table);

}  // namespace gnnd
