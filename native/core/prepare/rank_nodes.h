#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/feature/hotness.h"
#include "core/graph/topology_view.h"
#include "core/prepare/presample.h"

// Applies a job's cache policy: turns its spec into the hotness of every node.

namespace gnnd {

enum class CachePolicy : uint32_t {
  kCombined = 0,     // PreSC and the analytic estimate together
  kPresc = 1,        // pre-sampling alone
  kProbability = 2,  // the analytic estimate alone
  kDegree = 3,
  kRandom = 4,
  kOptimal = 5,  // the job's own epochs, sampled in advance: an oracle, for reports and tests
};

struct RankRequest {
  CachePolicy policy = CachePolicy::kCombined;
  uint32_t presample_epochs = 1;  // K, for kCombined and kPresc
  uint32_t epochs = 1;            // number of the job's epochs, for kOptimal
  uint64_t random_seed = 0;       // for kRandom
  Reach reach;                    // for kCombined and kProbability
};

struct RankResult {
  Hotness hotness;
  uint64_t presample_ns = 0;  // sampling and counting
  uint64_t estimate_ns = 0;   // the analytic part
};

// `train_nodes` are the job's; `presampler` is its sampler. Errors: the sampler's.
Result<RankResult> RankNodes(const RankRequest& request, const TopologyView& topology,
                             std::span<const uint32_t> train_nodes, Presampler* presampler);

}  // namespace gnnd
