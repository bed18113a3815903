#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/dataset/topology.h"
#include "core/run/sample_work.h"
#include "core/sample/sampler.h"

namespace gnnd {

// A Sampler's arithmetic: the seeds of a batch from the keyed permutation, its k-hop sample
// straight into the slot. Owns its mapping of the topology.
class GraphSampleWork final : public SampleWork {
 public:
  struct Options {
    uint64_t random_seed = 0;
    uint32_t batch_size = 0;
    std::vector<uint32_t> train_nodes;
    SamplerOptions sampler;
  };

  // REQUIRES: `layout` is that of this graph and these options.
  GraphSampleWork(Topology topology, Options options, const RecordLayout& layout);

  Status Sample(uint32_t epoch, uint32_t batch, std::span<std::byte> slot,
                SampleReport* report) override;

 private:
  Topology topology_;
  Options options_;
  Sampler sampler_;
  std::vector<uint32_t> seeds_;
};

}  // namespace gnnd
