#include "core/sample/options.h"

namespace gnnd {

SampleLimits LimitsOf(uint32_t num_nodes, uint64_t num_edges, uint32_t batch_size,
                      const SamplerOptions& options) {
  SampleLimits limits{num_nodes, num_edges, batch_size, options.fanouts};
  limits.edge_weights = options.weights != EdgeWeights::kNone;
  limits.self_weights = options.weights == EdgeWeights::kGcn;
  if (options.algorithm == Algorithm::kLabor) limits.rows = RowBound::kLabor;
  if (options.replace || options.algorithm == Algorithm::kWalk ||
      options.algorithm == Algorithm::kPlugin) {
    limits.rows = RowBound::kRepeats;
  }
  limits.expansion = options.expansion;
  return limits;
}

}  // namespace gnnd
