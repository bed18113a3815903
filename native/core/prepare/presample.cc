#include "core/prepare/presample.h"

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/batch/record.h"
#include "core/draw/philox.h"

namespace gnnd {

Presampler::Presampler(SampleWork* work, uint64_t slot_bytes, uint32_t num_nodes,
                       uint32_t batches_per_epoch)
    : work_(work),
      num_nodes_(num_nodes),
      batches_per_epoch_(batches_per_epoch),
      slot_(slot_bytes),
      recent_(num_nodes) {}

// Counters of 16 bits on large pages: counting must cost little beside sampling, and what it costs
// is cache misses.
void Presampler::Count(std::span<const uint32_t> nodes) {
  constexpr size_t kAhead = 32;  // enough that the counters' lines arrive in time
  uint16_t* const counts = recent_.data();
  const size_t steady = nodes.size() > kAhead ? nodes.size() - kAhead : 0;
  for (size_t i = 0; i < steady; ++i) {
    __builtin_prefetch(&counts[nodes[i + kAhead]], 1);
    ++counts[nodes[i]];
  }
  for (size_t i = steady; i < nodes.size(); ++i) ++counts[nodes[i]];
}

void Presampler::Fold(std::span<uint32_t> counts) {
  for (size_t v = 0; v < counts.size(); ++v) {
    counts[v] += recent_[v];
    recent_[v] = 0;
  }
}

Status Presampler::AddEpoch(uint32_t epoch, EpochFootprint* footprint, const OnBatch& on_batch) {
  // So many batches cannot overflow a recent count.
  constexpr uint32_t kFoldAfter = 65'535;
  GNND_CHECK(footprint->counts.size() == num_nodes_);
  const uint64_t start_ns = MonotonicNs();
  for (uint32_t batch = 0; batch < batches_per_epoch_; ++batch) {
    const uint64_t batch_ns = MonotonicNs();
    SampleReport report;
    GNND_TRY(work_->Sample(epoch, batch, {slot_.data(), slot_.size()}, &report));
    footprint->sample_ns += MonotonicNs() - batch_ns;
    const std::span<const uint32_t> nodes = OwnSample({slot_.data(), slot_.size()}).nodes();
    // A record lists a node once: each batch counts once.
    Count(nodes);
    if ((batch + 1) % kFoldAfter == 0) Fold(footprint->counts);
    if (on_batch) GNND_TRY(on_batch(nodes));
  }
  Fold(footprint->counts);
  footprint->total_ns += MonotonicNs() - start_ns;
  return Status::Ok();
}

Result<EpochFootprint> Presampler::Presample(uint32_t epochs) {
  EpochFootprint footprint;
  footprint.counts.resize(num_nodes_);
  for (uint32_t k = 0; k < epochs; ++k) {
    GNND_TRY(AddEpoch(kFirstPresampleEpoch - k, &footprint));
  }
  return footprint;
}

}  // namespace gnnd
