#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "core/executor/graph_sampler.h"
#include "core/graph/dataset.h"
#include "core/graph/topology.h"
#include "node/tables.h"

namespace gnnd::node {

// The options of the sampler for `sampling`, which is the same for a job's Samplers, for
// pre-sampling and for the cache report. `layout` belongs to this dataset and sampling; the dataset
// and `favoured` must outlive the sampler.
inline GraphSampler::Options GraphSamplerOptionsOf(const Dataset& dataset,
                                                   const SamplingOptions& sampling,
                                                   uint64_t random_seed,
                                                   std::span<const uint8_t> favoured = {}) {
  GraphSampler::Options options;
  options.random_seed = random_seed;
  options.batch_size = sampling.batch_size;
  for (const int64_t node : dataset.train()) {
    options.train_nodes.push_back(static_cast<uint32_t>(node));
  }
  options.sampler = sampling;
  options.edge_weights = dataset.edge_weights();
  options.favoured = favoured;
  return options;
}

inline Result<std::unique_ptr<SampleWork>> SampleWorkOf(const Dataset& dataset, Topology topology,
                                                        const SamplingOptions& sampling,
                                                        uint64_t random_seed,
                                                        const RecordLayout& layout,
                                                        std::span<const uint8_t> favoured = {}) {
  return GraphSampler::Create(
      std::move(topology), GraphSamplerOptionsOf(dataset, sampling, random_seed, favoured), layout);
}

}  // namespace gnnd::node
