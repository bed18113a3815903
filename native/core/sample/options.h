#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/batch/layout.h"
#include "core/graph/topology_view.h"
#include "core/item/links.h"

// A sampler's options: everything that decides a sample besides the graph, the seeds and the batch
// key (docs/sampling.md).

namespace gnnd {

class SamplerPlugin;

enum class Algorithm : uint32_t {
  kUniform = 1,   // every in-neighbour with the same probability (draw.h)
  kWeighted = 2,  // in proportion to edge weights (weighted.h)
  kWalk = 3,      // the nodes most visited by random walks (walk.h)
  kLabor = 4,     // one draw a node, shared by all rows of a hop (labor.h)
  kPlugin = 5,    // a user's shared object (include/gnnd/sampler_plugin.h)
};

// The edge weights in a record.
enum class EdgeWeights : uint32_t {
  kNone = 0,
  kGcn = 1,      // gcn_weights.h; for uniform draws without replacement
  kVisits = 2,   // number of visits by the node's walks; walks only
  kInverse = 3,  // one over the probability of being taken; LABOR only
  kGiven = 4,    // given by the plug-in; plug-ins only
  kShares = 5,   // shares in the mean over the whole row; locality only
};

struct WalkOptions {
  uint32_t walks = 4;         // from each node
  uint32_t length = 3;        // steps at most
  double restart_prob = 0.5;  // in [0, 1): that a walk ends after a step
};

inline constexpr uint32_t kMaxWalks = 64;
inline constexpr uint32_t kMaxWalkLength = 64;

struct LaborOptions {
  uint32_t dependency_window = 1;  // batches for which a node keeps its number, at least 1
};

// The scale of favoured neighbours from epoch to epoch.
enum class LocalitySchedule : uint32_t {
  kFixed = 1,     // always the largest
  kAdaptive = 2,  // starts at 1 and follows the time that extraction takes (core/draw/locality.h)
};

// Locality-aware sampling, from the job's spec.
struct LocalityOptions {
  double max_scale = 1;  // largest s, 1 to 8 in sixteenths; 1 = off
  LocalitySchedule schedule = LocalitySchedule::kFixed;
  double ratio = 0;           // share of the nodes that count as held, the hottest first
  uint32_t hop_nodes = 8192;  // most favoured nodes of each hop before the last

  bool on() const { return max_scale > 1; }
};

// A plug-in, from the job's spec.
struct PluginSource {
  std::string path;
  std::string sha256;    // lower-case hex
  std::string options;   // handed to create
  bool weights = false;  // it gives each pick a weight: EdgeWeights::kGiven
};

struct SamplerOptions {
  // Neighbours per row and relation, hop 0 (at the seeds) first; kFullNeighbourhood takes all.
  // Walks: the number of most visited nodes that become neighbours; never kFullNeighbourhood.
  std::vector<int32_t> fanouts;
  EdgeWeights weights = EdgeWeights::kNone;
  // Larger tables of one entry per node are replaced by hashing.
  uint64_t max_dense_table_bytes = 200'000'000;
  Algorithm algorithm = Algorithm::kUniform;
  bool replace = false;  // kUniform and kWeighted: a row may draw a neighbour again
  Expansion expansion = Expansion::kAll;
  WalkOptions walk{};          // read for kWalk only
  LaborOptions labor{};        // read for kLabor only
  LocalityOptions locality{};  // for kUniform without replacement; its weights are kShares or kGcn
  PluginSource source{};       // read for kPlugin only
  // kPlugin: the loaded plug-in. Null if the sampler is only described, not run.
  std::shared_ptr<SamplerPlugin> plugin{};
  // Of a graph of several relations: those of each relation in place of `fanouts`, as long as it; 0
  // draws nothing. Empty: `fanouts` for all.
  std::vector<std::vector<int32_t>> relation_fanouts{};
};

// Whether neighbours can be left out of what such a sampler drew (row_skips.h). With locality each
// edge stands for a share of its row, which is that of the whole draw.
inline bool CanSkipAfter(const SamplerOptions& options) { return !options.locality.on(); }

// The bounds of such a sampler's records of a graph of any types. A batch has `batch_size` nodes of
// `seed_type`.
SampleLimits LimitsOf(const GraphView& graph, uint32_t seed_type, uint32_t batch_size,
                      const SamplerOptions& options);

// Those of a graph of one type and one relation. A batch has `batch_size` items: nodes, or links.
SampleLimits LimitsOf(uint32_t num_nodes, uint64_t num_edges, uint32_t batch_size,
                      const SamplerOptions& options, const LinkOptions& links = {});

}  // namespace gnnd
