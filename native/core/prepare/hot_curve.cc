#include "core/prepare/hot_curve.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/feature/hot_order.h"

namespace gnnd {
namespace {

// A run has at most 1/kRunShare as many rows as all before it, and at least one.
constexpr uint64_t kRunShare = 128;

}  // namespace

std::vector<HotRun> HotRunsOf(std::span<const uint32_t> order, std::span<const float> hotness,
                              std::span<const uint32_t> counts, uint32_t epochs) {
  GNND_CHECK(order.size() == hotness.size() && order.size() == counts.size() && epochs > 0);
  const uint64_t num_nodes = order.size();
  std::vector<HotRun> runs;
  for (uint64_t from = 0; from < num_nodes;) {
    HotRun& run = runs.emplace_back();
    run.rows = std::min(num_nodes - from, std::max<uint64_t>(1, from / kRunShare));
    double sum = 0;
    for (const uint32_t node : order.subspan(from, run.rows)) {
      const uint64_t part = uint64_t{node} * kIdParts / num_nodes;
      ++run.part_rows[part];
      run.part_reads[part] += counts[node];
      sum += hotness[node];
    }
    // Means of runs with equal hotness differ in their last digits, but the curve must not rise.
    const double most = runs.size() > 1 ? runs[runs.size() - 2].hotness : sum;
    run.hotness = std::min(most, sum / static_cast<double>(run.rows));
    for (double& reads : run.part_reads) reads /= epochs;
    from += run.rows;
  }
  return runs;
}

Result<HotCurve> MeasureHotCurve(const RankRequest& request, const TopologyView& topology,
                                 std::span<const uint32_t> train_nodes, Presampler* presampler) {
  const RankResult ranked = GNND_VALUE(RankNodes(request, topology, train_nodes, presampler));
  EpochFootprint read;
  read.counts.resize(topology.num_nodes());
  for (uint32_t epoch = 0; epoch < request.epochs; ++epoch) {
    GNND_TRY(presampler->AddEpoch(epoch, &read));
  }
  const std::vector<uint32_t> order = OrderByHotness(ranked.hotness);
  return HotCurve{presampler->batches_per_epoch(),
                  HotRunsOf(order, ranked.hotness, read.counts, request.epochs)};
}

}  // namespace gnnd
