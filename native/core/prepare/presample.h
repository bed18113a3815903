#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
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
  uint64_t sample_ns = 0;        // time in the sampler alone, summed over threads
  uint64_t total_ns = 0;         // counting included
};

// Called with the input nodes of each batch, in order.
using OnBatch = std::function<Status(std::span<const uint32_t> nodes)>;

// Samplers, each with a slot of its own to write to, and what an epoch is. Batches are dealt out to
// as many threads as there are samplers; a sum does not know in what order it was made.
class Presampler {
 public:
  // `works` are borrowed, at least one. Throws std::bad_alloc when not even addresses are left for
  // a slot.
  Presampler(std::span<SampleWork* const> works, uint64_t slot_bytes, uint32_t num_nodes,
             uint32_t batches_per_epoch);
  Presampler(SampleWork* work, uint64_t slot_bytes, uint32_t num_nodes, uint32_t batches_per_epoch)
      : Presampler(std::span(&work, 1), slot_bytes, num_nodes, batches_per_epoch) {}

  uint32_t batches_per_epoch() const { return batches_per_epoch_; }

  // Samples every batch of `epoch` and adds to footprint->counts, which is of num_nodes zeros or of
  // what earlier epochs left (then the sum is over both). With `on_batch`, which wants batches in
  // order, the first sampler works alone.
  Status AddEpoch(uint32_t epoch, EpochFootprint* footprint, const OnBatch& on_batch = nullptr);

  // PreSC#K: the sum over `epochs` epochs at the reserved numbers, kFirstPresampleEpoch downward.
  Result<EpochFootprint> Presample(uint32_t epochs);

 private:
  struct Worker {
    SampleWork* work;
    HugeArray<std::byte> slot;
    HugeArray<uint16_t> recent;  // [num_nodes], counts of the batches since they were last folded
    uint64_t sample_ns = 0;
    Status status{};
  };
  // Every `stride`-th batch of an epoch from `first` on, into counts that several workers share.
  Status AddShare(Worker* worker, uint32_t epoch, uint32_t first, uint32_t stride,
                  std::span<uint32_t> counts, const OnBatch& on_batch);
  // Adds the recent counts to `counts` and starts them anew.
  void Fold(Worker* worker, std::span<uint32_t> counts);

  std::vector<Worker> workers_;
  std::mutex folding_;
  uint32_t num_nodes_ = 0;
  uint32_t batches_per_epoch_ = 0;
};

// How many samplers may pre-sample at once on so many cores: their scratch grows with the graph.
uint32_t PresampleThreads(uint32_t cores, uint32_t num_nodes, uint32_t batches_per_epoch);

}  // namespace gnnd
