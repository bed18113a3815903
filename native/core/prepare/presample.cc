#include "core/prepare/presample.h"

#include <algorithm>
#include <thread>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/batch/record.h"
#include "core/draw/philox.h"

namespace gnnd {

namespace {

// Of a sampler and of its counts, bytes a node (sampler.h); together they take no more than this.
constexpr uint64_t kScratchPerNode = 16 + sizeof(uint16_t);
constexpr uint64_t kMostScratch = uint64_t{4} << 30;

// Counters of 16 bits on large pages: counting must cost little beside sampling, and what it costs
// is cache misses.
void Count(std::span<const uint32_t> nodes, uint16_t* counts) {
  constexpr size_t kAhead = 32;  // enough that the counters' lines arrive in time
  const size_t steady = nodes.size() > kAhead ? nodes.size() - kAhead : 0;
  for (size_t i = 0; i < steady; ++i) {
    __builtin_prefetch(&counts[nodes[i + kAhead]], 1);
    ++counts[nodes[i]];
  }
  for (size_t i = steady; i < nodes.size(); ++i) ++counts[nodes[i]];
}

}  // namespace

uint32_t PresampleThreads(uint32_t cores, uint32_t num_nodes, uint32_t batches_per_epoch) {
  const uint64_t affordable = kMostScratch / (kScratchPerNode * std::max<uint64_t>(1, num_nodes));
  const uint64_t threads = std::min<uint64_t>({cores, affordable, batches_per_epoch});
  return static_cast<uint32_t>(std::max<uint64_t>(1, threads));
}

Presampler::Presampler(std::span<SampleWork* const> works, uint64_t slot_bytes, uint32_t num_nodes,
                       uint32_t batches_per_epoch)
    : num_nodes_(num_nodes), batches_per_epoch_(batches_per_epoch) {
  GNND_CHECK(!works.empty());
  for (SampleWork* work : works) {
    workers_.push_back({work, HugeArray<std::byte>(slot_bytes), HugeArray<uint16_t>(num_nodes)});
  }
}

void Presampler::Fold(Worker* worker, std::span<uint32_t> counts) {
  const std::lock_guard lock(folding_);
  for (size_t v = 0; v < counts.size(); ++v) {
    counts[v] += worker->recent[v];
    worker->recent[v] = 0;
  }
}

Status Presampler::AddShare(Worker* worker, uint32_t epoch, uint32_t first, uint32_t stride,
                            std::span<uint32_t> counts, const OnBatch& on_batch) {
  // So many batches cannot overflow a recent count.
  constexpr uint32_t kFoldAfter = 65'535;
  const std::span<std::byte> slot{worker->slot.data(), worker->slot.size()};
  uint32_t counted = 0;
  for (uint64_t batch = first; batch < batches_per_epoch_; batch += stride) {
    const uint64_t batch_ns = MonotonicNs();
    SampleReport report;
    GNND_TRY(worker->work->Sample(epoch, static_cast<uint32_t>(batch), slot, &report));
    worker->sample_ns += MonotonicNs() - batch_ns;
    const std::span<const uint32_t> nodes = OwnSample(slot).nodes();
    // A record lists a node once: each batch counts once.
    Count(nodes, worker->recent.data());
    if (++counted % kFoldAfter == 0) Fold(worker, counts);
    if (on_batch) GNND_TRY(on_batch(nodes));
  }
  Fold(worker, counts);
  return Status::Ok();
}

Status Presampler::AddEpoch(uint32_t epoch, EpochFootprint* footprint, const OnBatch& on_batch) {
  GNND_CHECK(footprint->counts.size() == num_nodes_);
  const uint64_t start_ns = MonotonicNs();
  const auto stride = static_cast<uint32_t>(on_batch ? 1 : workers_.size());
  const auto share = [&](uint32_t first) {
    Worker& worker = workers_[first];
    worker.sample_ns = 0;
    worker.status = AddShare(&worker, epoch, first, stride, footprint->counts, on_batch);
  };
  {
    std::vector<std::jthread> others;
    for (uint32_t i = 1; i < stride; ++i) others.emplace_back(share, i);
    share(0);
  }
  footprint->total_ns += MonotonicNs() - start_ns;
  for (uint32_t i = 0; i < stride; ++i) {
    GNND_TRY(workers_[i].status);
    footprint->sample_ns += workers_[i].sample_ns;
  }
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
