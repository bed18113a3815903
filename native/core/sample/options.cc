#include "core/sample/options.h"

#include <algorithm>

namespace gnnd {

SampleLimits LimitsOf(uint32_t num_nodes, uint64_t num_edges, uint32_t batch_size,
                      const SamplerOptions& options, const LinkOptions& links) {
  SampleLimits limits{num_nodes, num_edges, batch_size, options.fanouts};
  limits.edge_weights = options.weights != EdgeWeights::kNone;
  limits.self_weights = options.weights == EdgeWeights::kGcn;
  if (options.algorithm == Algorithm::kLabor) limits.rows = RowBound::kLabor;
  if (options.replace || options.algorithm == Algorithm::kWalk ||
      options.algorithm == Algorithm::kPlugin) {
    limits.rows = RowBound::kRepeats;
  }
  limits.expansion = options.expansion;
  if (links.on()) {
    const uint32_t pairs = std::min(batch_size, links.count);
    const uint64_t negatives = uint64_t{pairs} * links.PerPair(pairs);
    limits.batch_size = static_cast<uint32_t>(std::min<uint64_t>(num_nodes, links.MaxSeeds(pairs)));
    limits.pairs = {pairs, links.method == NegativeMethod::kInBatch ? 0 : negatives,
                    links.known == KnownLinks::kAllow ? 0 : negatives};
  }
  return limits;
}

}  // namespace gnnd
