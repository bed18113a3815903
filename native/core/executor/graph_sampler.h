#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/executor/sample_work.h"
#include "core/graph/topology.h"
#include "core/item/links.h"
#include "core/sample/link_seeds.h"
#include "core/sample/plugin.h"
#include "core/sample/sampler.h"

namespace gnnd {

// A Sampler's computation: draws a batch's seeds from the keyed permutation of its items, nodes or
// links, and its k-hop sample straight into the slot. Owns its mapping of the topology. Of a graph
// of several types, items are nodes of type 0.
class GraphSampler final : public SampleWork {
 public:
  struct Options {
    uint64_t random_seed = 0;
    uint32_t batch_size = 0;
    std::vector<uint32_t> train_nodes;  // of type 0
    bool shuffled = true;     // else batches are the items in their order, the same in every epoch
    bool rows_ascend = true;  // as those of message graphs do; read where items are links
    LinkOptions links{};      // on: the items are these links, and train_nodes is not read
    std::span<const uint32_t> train_links{};  // [links.count, 2], borrowed
    SamplerOptions sampler;
    std::span<const float> edge_weights{};  // [num_edges] or empty, borrowed; for plug-ins
    std::span<const uint8_t> favoured{};    // [num_nodes] or empty, borrowed; for locality
  };

  // `layout` belongs to this graph and these options. Loads the plug-in, if the options name one:
  // kPluginFailed when that fails. kInvalidArgument: links are to be left out of what was drawn
  // with locality (CanSkipAfter); a graph of several types is sampled otherwise than CheckTyped
  // allows.
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
  std::optional<LinkSeeds> links_;  // where items are links
};

}  // namespace gnnd
