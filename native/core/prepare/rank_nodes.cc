#include "core/prepare/rank_nodes.h"

#include <utility>

#include "core/base/check.h"
#include "core/base/clock.h"

namespace gnnd {
namespace {

Result<EpochFootprint> FootprintOfJob(uint32_t epochs, uint32_t num_nodes, Presampler* presampler) {
  EpochFootprint footprint;
  footprint.counts.resize(num_nodes);
  for (uint32_t epoch = 0; epoch < epochs; ++epoch) {
    GNND_TRY(presampler->AddEpoch(epoch, &footprint));
  }
  return footprint;
}

bool IsAnalytic(CachePolicy policy) {
  return policy == CachePolicy::kCombined || policy == CachePolicy::kProbability;
}

bool Samples(CachePolicy policy) {
  return policy == CachePolicy::kCombined || policy == CachePolicy::kPresc ||
         policy == CachePolicy::kOptimal;
}

}  // namespace

Result<RankResult> RankNodes(const RankRequest& request, const TopologyView& topology,
                             std::span<const uint32_t> train_nodes, Presampler* presampler) {
  RankResult result;
  Hotness estimate;
  if (IsAnalytic(request.policy)) {
    const uint64_t start_ns = MonotonicNs();
    estimate = ProbabilityHotness(topology, train_nodes, request.reach);
    result.estimate_ns = MonotonicNs() - start_ns;
  }
  EpochFootprint footprint;
  if (Samples(request.policy)) {
    footprint = GNND_VALUE(request.policy == CachePolicy::kOptimal
                               ? FootprintOfJob(request.epochs, topology.num_nodes(), presampler)
                               : presampler->Presample(request.presample_epochs));
    result.presample_ns = footprint.total_ns;
  }
  switch (request.policy) {
    case CachePolicy::kCombined:
      result.hotness = CombinedHotness(footprint.counts, request.presample_epochs, estimate);
      break;
    case CachePolicy::kPresc:
      result.hotness = PresampledHotness(footprint.counts, request.presample_epochs);
      break;
    case CachePolicy::kOptimal:
      result.hotness = PresampledHotness(footprint.counts, request.epochs);
      break;
    case CachePolicy::kProbability:
      result.hotness = std::move(estimate);
      break;
    case CachePolicy::kDegree:
      result.hotness = DegreeHotness(topology);
      break;
    case CachePolicy::kRandom:
      result.hotness = RandomHotness(request.random_seed, topology.num_nodes());
      break;
  }
  return result;
}

}  // namespace gnnd
