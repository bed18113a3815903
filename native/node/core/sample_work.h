#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "core/executor/device_sample_work.h"
#include "core/executor/graph_sampler.h"
#include "core/graph/dataset.h"
#include "core/graph/topology.h"
#include "node/tables.h"

namespace gnnd::node {

// The sampler that `sampling` asks for: the same for a job's Samplers, for pre-sampling and for the
// cache report. On `device` where there is one (it must outlive the sampler). `layout` is that of
// this dataset (which must outlive the sampler) and sampling.
inline Result<std::unique_ptr<SampleWork>> SampleWorkOf(const Dataset& dataset, Topology topology,
                                                        const SamplingOptions& sampling,
                                                        uint64_t random_seed,
                                                        const RecordLayout& layout,
                                                        const Device* device = nullptr) {
  GraphSampler::Options options;
  options.random_seed = random_seed;
  options.batch_size = sampling.batch_size;
  for (const int64_t node : dataset.train()) {
    options.train_nodes.push_back(static_cast<uint32_t>(node));
  }
  options.sampler = sampling;
  options.edge_weights = dataset.edge_weights();
  if (device != nullptr) return DeviceSampleWork::Create(*device, topology, options, layout);
  return GraphSampler::Create(std::move(topology), std::move(options), layout);
}

}  // namespace gnnd::node
