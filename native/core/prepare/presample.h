#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/huge_array.h"
#include "core/base/status.h"
#include "core/executor/sample_work.h"

// Pre-sampling (GNNLab, section 6.3): whole epochs of the job's own sampler, whose records are
// looked at and dropped.

namespace gnnd {

struct EpochFootprint {
  std::vector<uint32_t> counts;  // [num_nodes]: batches that have the node among their inputs
  uint64_t sample_ns = 0;        // time in the sampler alone
  uint64_t total_ns = 0;         // counting included
};

// Called with the input nodes of each batch, in order.
using OnBatch = std::function<Status(std::span<const uint32_t> nodes)>;

// A sampler, a slot of its own to write to, and what an epoch is.
class Presampler {
 public:
  // `work` is borrowed. Throws std::bad_alloc when not even addresses are left for a slot.
  Presampler(SampleWork* work, uint64_t slot_bytes, uint32_t num_nodes, uint32_t batches_per_epoch);

  uint32_t batches_per_epoch() const { return batches_per_epoch_; }

  // Samples every batch of `epoch` and adds to footprint->counts, which is of num_nodes zeros or of
  // what earlier epochs left (then the sum is over both).
  Status AddEpoch(uint32_t epoch, EpochFootprint* footprint, const OnBatch& on_batch = nullptr);

  // PreSC#K: the sum over `epochs` epochs at the reserved numbers, kFirstPresampleEpoch downward.
  Result<EpochFootprint> Presample(uint32_t epochs);

 private:
  void Count(std::span<const uint32_t> nodes);
  // Adds the recent counts to `counts` and starts them anew.
  void Fold(std::span<uint32_t> counts);

  SampleWork* work_ = nullptr;
  uint32_t num_nodes_ = 0;
  uint32_t batches_per_epoch_ = 0;
  HugeArray<std::byte> slot_;
  HugeArray<uint16_t> recent_;  // [num_nodes], counts of the batches since they were last folded
};

}  // namespace gnnd
