#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/prepare/rank_nodes.h"

// A dataset's hotness in few numbers: what a placement of its rows is planned from.

namespace gnnd {

// Equal parts of the node ids; part p begins at ceil(p * num_nodes / kIdParts).
inline constexpr uint32_t kIdParts = 8;

// Neighbours in the hot order.
struct HotRun {
  uint64_t rows = 0;
  double hotness = 0;  // what the policy gave each, mean
  // Of the nodes whose ids lie in each part: how many, and how often an epoch reads them, each
  // batch for itself; mean over the measured epochs.
  std::array<uint64_t, kIdParts> part_rows = {};
  std::array<double, kIdParts> part_reads = {};
};

struct HotCurve {
  uint32_t batches_per_epoch = 0;
  std::vector<HotRun> runs;
};

// `order` in runs. A run is about a hundredth as long as all before it together, so that a border
// between two is within 1 % of any rank that somebody could wish for, and there are some 2,000 of
// them for 10^8 nodes. Hotness and counts are by node, counts summed over `epochs`.
std::vector<HotRun> HotRunsOf(std::span<const uint32_t> order, std::span<const float> hotness,
                              std::span<const uint32_t> counts, uint32_t epochs);

// Ranks nodes as `request` says and samples request.epochs epochs, from 0, to see what they read.
// Errors: the sampler's.
Result<HotCurve> MeasureHotCurve(const RankRequest& request, const TopologyView& topology,
                                 std::span<const uint32_t> train_nodes, Presampler* presampler);

}  // namespace gnnd
