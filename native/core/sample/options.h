#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/batch/layout.h"

// What a sampler is asked for: everything beside the graph, the seeds and the batch key that
// decides a sample (docs/sampling.md).

namespace gnnd {

class SamplerPlugin;

enum class Algorithm : uint32_t {
  kUniform = 1,   // every in-neighbour alike (draw.h)
  kWeighted = 2,  // in proportion to edge weights (weighted.h)
  kWalk = 3,      // the nodes most visited by random walks (walk.h)
  kLabor = 4,     // one draw a node, shared by all rows of a hop (labor.h)
  kPlugin = 5,    // a user's shared object (include/gnnd/sampler_plugin.h)
};

// Weights that a record carries.
enum class EdgeWeights : uint32_t {
  kNone = 0,
  kGcn = 1,      // gcn_weights.h; for uniform draws without replacement
  kVisits = 2,   // how often the walks of a node came by; walks only
  kInverse = 3,  // one over the probability of being taken; LABOR only
  kGiven = 4,    // what the plug-in says; plug-ins only
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

// How the scale of favoured neighbours follows from epoch to epoch.
enum class LocalitySchedule : uint32_t {
  kFixed = 1,     // it is the largest one in every epoch
  kAdaptive = 2,  // from 1 on, by what extraction takes (core/draw/locality.h)
};

// Locality-aware sampling, as the job's spec says.
struct LocalityOptions {
  double max_scale = 1;  // s at most, 1 to 8 in sixteenths; 1 = off
  LocalitySchedule schedule = LocalitySchedule::kFixed;
  double ratio = 0;           // share of the nodes that count as held, in the order of hotness
  uint32_t hop_nodes = 8192;  // favoured nodes of each hop before the last, at most

  bool on() const { return max_scale > 1; }
};

// Which plug-in, as the job's spec says.
struct PluginSource {
  std::string path;
  std::string sha256;    // lower-case hex
  std::string options;   // handed to create
  bool weights = false;  // it gives each pick one: EdgeWeights::kGiven
};

struct SamplerOptions {
  // Hop 0 (at the seeds) first: neighbours a row, kFullNeighbourhood takes all. Walks: how many of
  // the most visited nodes are neighbours; never kFullNeighbourhood.
  std::vector<int32_t> fanouts;
  EdgeWeights weights = EdgeWeights::kNone;
  // Graphs whose table of one entry per node would be larger are relabelled by hashing.
  uint64_t max_dense_table_bytes = 200'000'000;
  Algorithm algorithm = Algorithm::kUniform;
  bool replace = false;  // kUniform and kWeighted: a row may draw a neighbour again
  Expansion expansion = Expansion::kAll;
  WalkOptions walk{};          // read for kWalk only
  LaborOptions labor{};        // read for kLabor only
  LocalityOptions locality{};  // for kUniform without replacement; its weights are kShares or kGcn
  PluginSource source{};       // read for kPlugin only
  // kPlugin: what draws. Null where a sampler is only described, not run.
  std::shared_ptr<SamplerPlugin> plugin{};
};

// What bounds such a sampler's records.
SampleLimits LimitsOf(uint32_t num_nodes, uint64_t num_edges, uint32_t batch_size,
                      const SamplerOptions& options);

}  // namespace gnnd
