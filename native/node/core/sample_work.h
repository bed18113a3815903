#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/executor/graph_sampler.h"
#include "core/graph/dataset.h"
#include "core/graph/npy.h"
#include "core/graph/topology.h"
#include "core/sample/typed.h"
#include "node/tables.h"

namespace gnnd::node {

// A job's items where these are links: links_train.npy of its dataset's folder, or another file.
class TrainingLinks {
 public:
  static Result<TrainingLinks> Open(const std::string& folder, const LinkOptions& options) {
    return options.on() ? At(folder + "/links_train.npy", options) : TrainingLinks();
  }

  // Those of a file.
  static Result<TrainingLinks> At(const std::string& file, const LinkOptions& options) {
    TrainingLinks links;
    links.array_ = GNND_VALUE(NpyArray::Open(file));
    GNND_TRY(links.array_->Expect({NpyType::kUint32}, {options.count, 2}));
    return links;
  }

  std::span<const uint32_t> values() const {
    return array_ ? array_->values<uint32_t>() : std::span<const uint32_t>();
  }

 private:
  std::optional<NpyArray> array_;
};

// The layout of the records of a job over several types.
inline Result<RecordLayout> TypedLayoutOf(const Schema& schema, const SamplingOptions& sampling) {
  GNND_TRY(CheckTyped(sampling, sampling.links, schema.relations.size()));
  if (sampling.hot_ranks) {
    return Status(Code::kInvalidArgument, "hot ranks are not for graphs of several types");
  }
  return LayoutOf(schema, sampling.batch_size, sampling);
}

// What options of any job's sampler have: of one over several types, they are all.
inline GraphSampler::Options GraphSamplerOptionsOf(std::span<const int64_t> train,
                                                   const SamplingOptions& sampling,
                                                   uint64_t random_seed) {
  GraphSampler::Options options;
  options.random_seed = random_seed;
  options.batch_size = sampling.batch_size;
  for (const int64_t node : train) options.train_nodes.push_back(static_cast<uint32_t>(node));
  options.links = sampling.links;
  options.sampler = sampling;
  return options;
}

// The options of the sampler for `sampling`, which is the same for a job's Samplers, for
// pre-sampling and for the cache report. `layout` belongs to this dataset and sampling; the dataset
// the training links and `favoured` must outlive the sampler.
inline GraphSampler::Options GraphSamplerOptionsOf(const Dataset& dataset,
                                                   const TrainingLinks& links,
                                                   const SamplingOptions& sampling,
                                                   uint64_t random_seed,
                                                   std::span<const uint8_t> favoured = {}) {
  GraphSampler::Options options = GraphSamplerOptionsOf(dataset.train(), sampling, random_seed);
  options.train_links = links.values();
  options.edge_weights = dataset.edge_weights();
  options.favoured = favoured;
  return options;
}

inline Result<std::unique_ptr<SampleWork>> SampleWorkOf(
    const Dataset& dataset, const TrainingLinks& links, Topology topology,
    const SamplingOptions& sampling, uint64_t random_seed, const RecordLayout& layout) {
  return GraphSampler::Create(std::move(topology),
                              GraphSamplerOptionsOf(dataset, links, sampling, random_seed), layout);
}

// Replaces the training nodes by those of a file, where there is one of nodes.
inline Status UseSeeds(const SeedOptions& seeds, uint64_t num_nodes,
                       GraphSampler::Options* options) {
  options->shuffled = seeds.shuffled;
  if (seeds.path.empty() || options->links.on()) return Status::Ok();
  const NpyArray array = GNND_VALUE(NpyArray::Open(seeds.path));
  GNND_TRY(array.Expect({NpyType::kInt64}, {seeds.count}));
  options->train_nodes.clear();
  for (const int64_t node : array.values<int64_t>()) {
    if (node < 0 || static_cast<uint64_t>(node) >= num_nodes) {
      return Status(Code::kDatasetCorrupt, array.file() + ": node " + std::to_string(node) +
                                               ", but the graph has " + std::to_string(num_nodes));
    }
    options->train_nodes.push_back(static_cast<uint32_t>(node));
  }
  return Status::Ok();
}

}  // namespace gnnd::node
