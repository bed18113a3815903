#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/huge_array.h"
#include "core/base/mapping.h"
#include "core/base/status.h"
#include "core/executor/sample_work.h"
#include "core/graph/node_numbers.h"

// Pre-sampling (GNNLab, section 6.3): runs whole epochs of the job's own sampler, counts their
// input nodes and drops the records. Batches are independent and counts are sums, so threads share
// the batches and their number does not change the result.

namespace gnnd {

struct EpochFootprint {
  // Number of batches with the node among their inputs: [num_nodes], or of several types by number
  // (NodeNumbers), 0 where no node has it.
  std::vector<uint32_t> counts;
  uint64_t sample_ns = 0;  // time in samplers alone, summed over the threads
  uint64_t total_ns = 0;   // wall time, counting included
};

// Called with the input nodes of each batch, in order.
using OnBatch = std::function<Status(std::span<const uint32_t> nodes)>;

// Number of samplers worth starting on `cores` cores: their memory, 17 bytes a node each, must stay
// small beside a host's.
uint32_t PresampleThreads(uint32_t cores, uint32_t num_nodes, uint32_t batches_per_epoch);

// The samplers of all threads, with a slot each to write to.
class Presampler {
 public:
  // `works` are borrowed, one for each thread and all alike. Throws std::bad_alloc when not even
  // address space is left for a slot.
  Presampler(const std::vector<SampleWork*>& works, uint64_t slot_bytes, uint32_t num_nodes,
             uint32_t batches_per_epoch)
      : Presampler(works, slot_bytes, {0}, num_nodes, batches_per_epoch) {}
  // Of several types. REQUIRES: they have no more than 2^32 numbers.
  Presampler(const std::vector<SampleWork*>& works, uint64_t slot_bytes, const NodeNumbers& numbers,
             uint32_t batches_per_epoch);

  uint32_t batches_per_epoch() const { return batches_per_epoch_; }

  // Samples every batch of `epoch` and adds its counts to footprint->counts, which holds zeros or
  // the counts of earlier epochs. With `on_batch`, which is called in order, one thread does all of
  // it; it is for graphs of one type.
  Status AddEpoch(uint32_t epoch, EpochFootprint* footprint, const OnBatch& on_batch = nullptr);

  // PreSC#K: the sum over `epochs` epochs at the reserved numbers, kFirstPresampleEpoch downward.
  Result<EpochFootprint> Presample(uint32_t epochs);

 private:
  // The sampler and memory of one thread.
  struct Worker {
    SampleWork* work;
    Mapping slot;               // sparse: a record touches little of it
    HugeArray<uint8_t> recent;  // [num_counts_], batches counted since the last Fold
  };
  // State that the threads of an epoch share.
  struct Epoch;

  Presampler(const std::vector<SampleWork*>& works, uint64_t slot_bytes,
             std::vector<uint64_t> begins, uint64_t num_counts, uint32_t batches_per_epoch);
  // Takes batches until none is left.
  Status Run(Worker* worker, Epoch* epoch);

  std::vector<Worker> workers_;
  std::vector<uint64_t> begins_;  // place of each type's first count
  uint64_t num_counts_ = 0;
  uint32_t batches_per_epoch_ = 0;
};

}  // namespace gnnd
