#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/prepare/rank_nodes.h"

// A dataset's hotness in a few numbers, from which a placement of its rows is planned.

namespace gnnd {

// Equal parts of the node ids; part p begins at ceil(p * num_nodes / kIdParts).
inline constexpr uint32_t kIdParts = 8;

// Consecutive nodes in the hot order.
struct HotRun {
  uint64_t rows = 0;
  double hotness = 0;  // mean hotness that the policy gave these nodes
  // For the nodes whose ids lie in each part: their number, and how many times an epoch's batches
  // read them (a batch counts once per node), as the mean over the measured epochs.
  std::array<uint64_t, kIdParts> part_rows = {};
  std::array<double, kIdParts> part_reads = {};
};

struct HotCurve {
  uint32_t batches_per_epoch = 0;
  std::vector<HotRun> runs;
};

// Divides `order` into runs. A run is about a hundredth as long as all before it together, so that
// a border between two runs is within 1 % of any rank, and 10^8 nodes make some 2,000 runs.
// `hotness` and `counts` are indexed by node; `counts` is the sum over `epochs`.
std::vector<HotRun> HotRunsOf(std::span<const uint32_t> order, std::span<const float> hotness,
                              std::span<const uint32_t> counts, uint32_t epochs);

// Ranks nodes as `request` says and samples request.epochs epochs, from 0, to count their reads.
// Errors: the sampler's.
Result<HotCurve> MeasureHotCurve(const RankRequest& request, const TopologyView& topology,
                                 std::span<const uint32_t> train_nodes, Presampler* presampler);

}  // namespace gnnd
