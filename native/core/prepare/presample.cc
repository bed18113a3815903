#include "core/prepare/presample.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/base/contain.h"
#include "core/base/prefetch.h"
#include "core/batch/record.h"
#include "core/draw/philox.h"

namespace gnnd {
namespace {

// Counts in 8 bits on large pages: counting must cost little beside sampling, and its cost is cache
// misses.
void Count(std::span<const uint32_t> nodes, uint8_t* counts) {
  constexpr size_t kAhead = 32;  // enough that the counters' lines arrive in time
  const PrefetchLevel level = BestPrefetchLevel();
  const size_t steady = nodes.size() > kAhead ? nodes.size() - kAhead : 0;
  for (size_t i = 0; i < steady; ++i) {
    Prefetch(level, &counts[nodes[i + kAhead]]);
    ++counts[nodes[i]];
  }
  for (size_t i = steady; i < nodes.size(); ++i) ++counts[nodes[i]];
}

// Adds the recent counts to `counts` and resets them.
void Fold(uint8_t* recent, std::span<uint32_t> counts) {
  for (size_t v = 0; v < counts.size(); ++v) {
    counts[v] += recent[v];
    recent[v] = 0;
  }
}

std::vector<uint64_t> BeginsOf(const NodeNumbers& numbers) {
  std::vector<uint64_t> begins;
  for (uint32_t type = 0; type < numbers.num_types(); ++type) begins.push_back(numbers.begin(type));
  return begins;
}

}  // namespace

struct Presampler::Epoch {
  uint32_t number;
  EpochFootprint* footprint;
  const OnBatch* on_batch;
  std::atomic<uint32_t> next = 0;  // batch
  std::atomic<bool> failed = false;
  std::mutex mutex{};  // guards the footprint and the status
  Status status{};
};

uint32_t PresampleThreads(uint32_t cores, uint32_t num_nodes, uint32_t batches_per_epoch) {
  // Memory of a sampler (sampler.h) with its counts, and of all samplers together at most.
  constexpr uint64_t kBytesPerNode = 16 + sizeof(uint8_t);
  constexpr uint64_t kMostBytes = uint64_t{4} << 30;
  const uint64_t affordable = kMostBytes / (kBytesPerNode * std::max<uint64_t>(1, num_nodes));
  const uint64_t threads = std::min<uint64_t>({cores, affordable, batches_per_epoch});
  return static_cast<uint32_t>(std::max<uint64_t>(1, threads));
}

Presampler::Presampler(const std::vector<SampleWork*>& works, uint64_t slot_bytes,
                       const NodeNumbers& numbers, uint32_t batches_per_epoch)
    : Presampler(works, slot_bytes, BeginsOf(numbers), numbers.end(), batches_per_epoch) {}

Presampler::Presampler(const std::vector<SampleWork*>& works, uint64_t slot_bytes,
                       std::vector<uint64_t> begins, uint64_t num_counts,
                       uint32_t batches_per_epoch)
    : begins_(std::move(begins)), num_counts_(num_counts), batches_per_epoch_(batches_per_epoch) {
  GNND_CHECK(!works.empty());
  GNND_CHECK(num_counts <= uint64_t{1} << 32);
  for (SampleWork* work : works) {
    workers_.push_back({work, AnonymousOrThrow(slot_bytes, {.huge_pages = false}),
                        HugeArray<uint8_t>(num_counts)});
  }
}

Status Presampler::Run(Worker* worker, Epoch* epoch) {
  // Most batches that cannot overflow a recent count.
  constexpr uint32_t kFoldAfter = 255;
  const std::span<std::byte> slot{worker->slot.data(), worker->slot.size()};
  uint64_t sample_ns = 0;
  uint32_t counted = 0;
  while (!epoch->failed.load(std::memory_order_relaxed)) {
    const uint32_t batch = epoch->next.fetch_add(1, std::memory_order_relaxed);
    if (batch >= batches_per_epoch_) break;
    const uint64_t batch_ns = MonotonicNs();
    SampleReport report;
    GNND_TRY(worker->work->Sample({epoch->number, batch, slot}, &report));
    sample_ns += MonotonicNs() - batch_ns;
    const Sample sample = OwnSample(slot);
    // A record lists a node once, so a batch counts once per node.
    for (uint32_t type = 0; type < begins_.size(); ++type) {
      Count(sample.nodes(type), worker->recent.data() + begins_[type]);
    }
    if (*epoch->on_batch) GNND_TRY((*epoch->on_batch)(sample.nodes()));
    if (++counted % kFoldAfter == 0) {
      const std::lock_guard lock(epoch->mutex);
      Fold(worker->recent.data(), epoch->footprint->counts);
    }
  }
  const std::lock_guard lock(epoch->mutex);
  Fold(worker->recent.data(), epoch->footprint->counts);
  epoch->footprint->sample_ns += sample_ns;
  return Status::Ok();
}

Status Presampler::AddEpoch(uint32_t epoch, EpochFootprint* footprint, const OnBatch& on_batch) {
  GNND_CHECK(footprint->counts.size() == num_counts_);
  GNND_CHECK(!on_batch || begins_.size() == 1);
  const uint64_t start_ns = MonotonicNs();
  Epoch shared{.number = epoch, .footprint = footprint, .on_batch = &on_batch};
  const auto run = [&](Worker* worker) {
    Status status = Contained([&] { return Run(worker, &shared); });
    if (status.ok()) return;
    shared.failed = true;
    const std::lock_guard lock(shared.mutex);
    if (shared.status.ok()) shared.status = std::move(status);
  };
  {
    std::vector<std::jthread> others;  // end before the variables that they use
    for (size_t i = 1; i < workers_.size() && !on_batch; ++i) {
      others.emplace_back(run, &workers_[i]);
    }
    run(&workers_[0]);
  }
  footprint->total_ns += MonotonicNs() - start_ns;
  return shared.status;
}

Result<EpochFootprint> Presampler::Presample(uint32_t epochs) {
  EpochFootprint footprint;
  footprint.counts.resize(num_counts_);
  for (uint32_t k = 0; k < epochs; ++k) {
    GNND_TRY(AddEpoch(kFirstPresampleEpoch - k, &footprint));
  }
  return footprint;
}

}  // namespace gnnd
