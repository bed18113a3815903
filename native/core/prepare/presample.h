#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/huge_array.h"
#include "core/base/mapping.h"
#include "core/base/status.h"
#include "core/executor/sample_work.h"

// Pre-sampling (GNNLab, section 6.3): whole epochs of the job's own sampler, whose records are
// looked at and dropped. Batches are independent and counts are sums, so threads share the batches
// and the result does not depend on how many they are.

namespace gnnd {

struct EpochFootprint {
  std::vector<uint32_t> counts;  // [num_nodes]: batches that have the node among their inputs
  uint64_t sample_ns = 0;        // time in samplers alone, summed over the threads
  uint64_t total_ns = 0;         // wall time, counting included
};

// Called with the input nodes of each batch, in order.
using OnBatch = std::function<Status(std::span<const uint32_t> nodes)>;

// Samplers worth having on so many cores: as long as what all take, 17 bytes a node each, is small
// beside a host's memory.
uint32_t PresampleThreads(uint32_t cores, uint32_t num_nodes, uint32_t batches_per_epoch);

// The samplers, slots of their own to write to, and what an epoch is.
class Presampler {
 public:
  // `works` are borrowed, one for each thread and all alike. Throws std::bad_alloc when not even
  // addresses are left for a slot.
  Presampler(const std::vector<SampleWork*>& works, uint64_t slot_bytes, uint32_t num_nodes,
             uint32_t batches_per_epoch);

  uint32_t batches_per_epoch() const { return batches_per_epoch_; }

  // Samples every batch of `epoch` and adds to footprint->counts, which is of num_nodes zeros or of
  // what earlier epochs left (then the sum is over both). With `on_batch` by one thread, since it
  // is called in order.
  Status AddEpoch(uint32_t epoch, EpochFootprint* footprint, const OnBatch& on_batch = nullptr);

  // PreSC#K: the sum over `epochs` epochs at the reserved numbers, kFirstPresampleEpoch downward.
  Result<EpochFootprint> Presample(uint32_t epochs);

 private:
  // What one thread samples with.
  struct Worker {
    SampleWork* work;
    Mapping slot;               // sparse: a record touches little of it
    HugeArray<uint8_t> recent;  // [num_nodes], counts of the batches since they were last folded
  };
  // What the threads of an epoch share.
  struct Epoch;

  // Takes batches until none is left.
  Status Run(Worker* worker, Epoch* epoch);

  std::vector<Worker> workers_;
  uint32_t num_nodes_ = 0;
  uint32_t batches_per_epoch_ = 0;
};

}  // namespace gnnd
