#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/executor/sample_work.h"
#include "core/graph/topology.h"
#include "core/sample/plugin.h"
#include "core/sample/sampler.h"

namespace gnnd {

// A Sampler's computation: draws a batch's seeds from the keyed permutation, and its k-hop sample
// straight into the slot. Owns its mapping of the topology.
class GraphSampler final : public SampleWork {
 public:
  struct Options {
    uint64_t random_seed = 0;
    uint32_t batch_size = 0;
    std::vector<uint32_t> train_nodes;
    bool shuffled = true;  // else batches are the nodes in their order, the same in every epoch
    SamplerOptions sampler;
    std::span<const float> edge_weights{};  // [num_edges] or empty, borrowed; for plug-ins
    std::span<const uint8_t> favoured{};    // [num_nodes] or empty, borrowed; for locality
  };

  // `layout` belongs to this graph and these options. Loads the plug-in, if the options name one:
  // kPluginFailed when that fails.
  static Result<std::unique_ptr<SampleWork>> Create(Topology topology, Options options,
                                                    const RecordLayout& layout);

  Status Start(const SampleTask& task) override;  // does all of it
  Status Finish(const SampleTask& task, SampleReport* report) override;

 private:
  GraphSampler(Topology topology, Options options, const RecordLayout& layout);

  Topology topology_;
  Options options_;
  Sampler sampler_;
  std::vector<uint32_t> seeds_;
};

}  // namespace gnnd
