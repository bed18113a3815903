#include "core/sample/options.h"

#include <algorithm>

#include "core/graph/schema.h"

namespace gnnd {

namespace {

// Whatever a dataset has fits a record.
static_assert(Schema::kMaxTypes == kMaxNodeTypes && Schema::kMaxRelations == kMaxRelations);

void AddOptions(const SamplerOptions& options, SampleLimits* limits) {
  limits->edge_weights = options.weights != EdgeWeights::kNone;
  limits->self_weights = options.weights == EdgeWeights::kGcn;
  if (options.algorithm == Algorithm::kLabor) limits->rows = RowBound::kLabor;
  if (options.replace || options.algorithm == Algorithm::kWalk ||
      options.algorithm == Algorithm::kPlugin) {
    limits->rows = RowBound::kRepeats;
  }
  limits->expansion = options.expansion;
}

}  // namespace

SampleLimits LimitsOf(const GraphView& graph, uint32_t seed_type, uint32_t batch_size,
                      const SamplerOptions& options) {
  SampleLimits limits;
  for (uint32_t t = 0; t < graph.num_nodes.size(); ++t) {
    limits.types.push_back({graph.num_nodes[t], t == seed_type ? batch_size : 0});
  }
  const auto& lists = options.relation_fanouts;
  for (size_t r = 0; r < graph.relations.size(); ++r) {
    const RelationView& relation = graph.relations[r];
    limits.relations.push_back({relation.src_type, relation.dst_type, relation.rows.num_edges(),
                                lists.empty() ? options.fanouts : lists[r]});
  }
  AddOptions(options, &limits);
  return limits;
}

SampleLimits LimitsOf(uint32_t num_nodes, uint64_t num_edges, uint32_t batch_size,
                      const SamplerOptions& options, const LinkOptions& links) {
  SampleLimits limits = SampleLimits::Of(num_nodes, num_edges, batch_size, options.fanouts);
  AddOptions(options, &limits);
  if (links.on()) {
    const uint32_t pairs = std::min(batch_size, links.count);
    const uint64_t negatives = uint64_t{pairs} * links.PerPair(pairs);
    limits.types[0].max_seeds =
        static_cast<uint32_t>(std::min<uint64_t>(num_nodes, links.MaxSeeds(pairs)));
    limits.pairs = {pairs, links.method == NegativeMethod::kInBatch ? 0 : negatives,
                    links.known == KnownLinks::kAllow ? 0 : negatives};
  }
  return limits;
}

}  // namespace gnnd
