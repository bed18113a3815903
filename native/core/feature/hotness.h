#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/topology_view.h"
#include "core/sample/options.h"

// Hotness of nodes (GNNLab, section 6): the number of batches of an epoch that are expected to have
// a node among their inputs. Every policy is a function that gives one float per node. Only the
// order of these values matters (hot_order.h). PreSC and the oracle are computed from measured
// footprints (core/prepare/presample.h).

namespace gnnd {

using Hotness = std::vector<float>;  // [num_nodes]

// How a job's batches reach nodes: the input of the estimate.
struct Reach {
  SamplerOptions sampler;
  uint32_t batch_size = 0;
  // Where items are no nodes: the probability that a batch has each node among its seeds,
  // [num_nodes], and the number of items. Empty: each training node is a seed of one batch.
  std::vector<float> seed_shares{};
  uint32_t items = 0;
};

// Out-degree: rows list in-neighbours, so this counts how often a node is listed.
Hotness DegreeHotness(const TopologyView& topology);

// Independent uniform values, keyed by the random seed.
Hotness RandomHotness(uint64_t random_seed, uint32_t num_nodes);

// Whether the estimate exists: nothing is known about the draws of a plug-in.
inline bool HasEstimate(const SamplerOptions& sampler) {
  return sampler.algorithm != Algorithm::kPlugin;
}

// Expected number of batches of an epoch that contain a node, from inclusion probabilities
// propagated through the hops of the sampler (vertex inclusion probability of SALIENT++): with
// p_0 = the batch's share of the training nodes, or reach.seed_shares, and e_h(v) the probability
// that hop h expands v (p_h, or what it added to p_{h-1} where only new nodes are expanded),
//
//   p_{h+1}(u) = 1 - (1 - p_h(u)) * product over rows v that list u of (1 - e_h(v) * q_h(v, u)),
//
// where q is the probability that row v draws u: min(1, fanout / degree) for uniform draws and
// LABOR; 1 - (1 - share of the row's weight)^fanout by weight or with replacement. A walk reaches u
// with probability 1 - exp(-visits), from expected visits scaled to the neighbours that are kept.
//
// Treats inclusions as independent, which is not quite true: hubs come out somewhat too hot, and
// LABOR's shared draws too spread. `train_nodes` are distinct; the topology has alias tables if the
// sampler draws by weight. Work: one pass over the topology per hop (per step of walks); 12 to 16
// bytes per node.
// REQUIRES: HasEstimate(reach.sampler).
Hotness ProbabilityHotness(const TopologyView& topology, std::span<const uint32_t> train_nodes,
                           const Reach& reach);

// PreSC#K: the mean per node over `epochs` pre-sampling epochs, from the sums of their footprints.
Hotness PresampledHotness(std::span<const uint32_t> counts, uint32_t epochs);

// Number of counted epochs that the analytic estimate is worth in CombinedHotness. The share of the
// oracle's hit rate is flat around it: on four graphs, with K = 1 and caches of 5 to 30 %, weights
// from 1 to 8 stay within half a percent of each other (docs/caching.md).
inline constexpr float kEstimateWeight = 2.0F;

// Combines counts and estimate: the posterior mean of a count whose prior has the estimate as its
// mean and `weight` epochs as its strength,
//
//   (counts + weight * estimate) / (epochs + weight).
//
// Counts correct the estimate's assumption of independence; the estimate ranks the many nodes that
// were counted equally often (most of them once or never).
Hotness CombinedHotness(std::span<const uint32_t> counts, uint32_t epochs,
                        std::span<const float> estimate, float weight = kEstimateWeight);

}  // namespace gnnd
