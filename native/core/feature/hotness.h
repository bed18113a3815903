#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/topology_view.h"
#include "core/sample/options.h"

// Hotness of nodes (GNNLab, section 6): how many batches of an epoch are expected to have a node
// among their inputs. Every policy is a function that gives one float per node; what a policy is
// good for is the order it puts nodes in (hot_order.h), so only comparisons between its values
// count. Measured footprints, of which PreSC and the oracle are made, come from
// core/prepare/presample.h.

namespace gnnd {

using Hotness = std::vector<float>;  // [num_nodes]

// How a job's batches reach nodes, as the estimate needs it.
struct Reach {
  SamplerOptions sampler;
  uint32_t batch_size = 0;
};

// Out-degree: rows list in-neighbours, so it is how often a node is listed.
Hotness DegreeHotness(const TopologyView& topology);

// Independent uniform values, keyed by the random seed.
Hotness RandomHotness(uint64_t random_seed, uint32_t num_nodes);

// Whether there is such an estimate: nothing is known of what a plug-in draws.
inline bool HasEstimate(const SamplerOptions& sampler) {
  return sampler.algorithm != Algorithm::kPlugin;
}

// Expected number of batches of an epoch that contain a node, from inclusion probabilities
// propagated through the hops of the sampler (vertex inclusion probability of SALIENT++): with
// p_0 = the batch's share of the training nodes and e_h(v) the probability that hop h expands v
// (p_h, or what it added to p_{h-1} where only new nodes are expanded),
//
//   p_{h+1}(u) = 1 - (1 - p_h(u)) * product over rows v that list u of (1 - e_h(v) * q_h(v, u)),
//
// where q is the probability that row v draws u: min(1, fanout / degree) for uniform draws and
// LABOR; 1 - (1 - share of the row's weight)^fanout by weight or with replacement. A walk reaches u
// 1 - exp(-visits) of the time, visits being expected and thinned to the neighbours that are kept.
//
// Takes inclusions as independent, which they are not quite: hubs come out somewhat too hot, and
// LABOR's shared draws too spread. `train_nodes` are distinct; the topology has alias tables where
// the sampler draws by weight. Work: one pass over the topology per hop (per step of walks);
// 12 to 16 bytes per node.
// REQUIRES: HasEstimate(reach.sampler).
Hotness ProbabilityHotness(const TopologyView& topology, std::span<const uint32_t> train_nodes,
                           const Reach& reach);

// Footprints of `epochs` pre-sampling epochs, summed per node, as their mean: PreSC#K.
Hotness PresampledHotness(std::span<const uint32_t> counts, uint32_t epochs);

// How many epochs of counting the analytic estimate is worth in CombinedHotness. The share of the
// oracle's hit rate is flat around it: on four graphs, with K = 1 and caches of 5 to 30 %, weights
// from 1 to 8 stay within half a percent of each other (docs/caching.md).
inline constexpr float kEstimateWeight = 2.0F;

// Both at once: the posterior mean of a count whose prior has the estimate as its mean and
// `weight` epochs as its strength,
//
//   (counts + weight * estimate) / (epochs + weight).
//
// Counts say what the estimate's independence misses; the estimate says which of the many nodes
// that were counted equally often (most of them once or never) is the likelier one.
Hotness CombinedHotness(std::span<const uint32_t> counts, uint32_t epochs,
                        std::span<const float> estimate, float weight = kEstimateWeight);

}  // namespace gnnd
