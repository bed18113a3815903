#include "core/ledger/executor_log.h"

#include <algorithm>
#include <iterator>

#include "core/base/clock.h"

namespace gnnd {
namespace {

// Single-writer: a load and a store, not a locked addition.
void AddTo(std::atomic<uint64_t>& word, uint64_t amount) {
  word.store(word.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

template <size_t N>
size_t BucketOf(const uint64_t (&bounds)[N], uint64_t ns) {
  return static_cast<size_t>(std::lower_bound(std::begin(bounds), std::end(bounds), ns) -
                             std::begin(bounds));
}

}  // namespace

bool ExecutorLog::Owns(uint32_t incarnation) const {
  return row_.incarnation.load(std::memory_order_acquire) == incarnation &&
         row_.phase.load(std::memory_order_acquire) != static_cast<uint32_t>(Phase::kReaped);
}

void ExecutorLog::SetPhase(Phase phase) {
  uint32_t old = row_.phase.load(std::memory_order_relaxed);
  while (old != static_cast<uint32_t>(Phase::kReaped) &&
         !row_.phase.compare_exchange_weak(old, static_cast<uint32_t>(phase),
                                           std::memory_order_release, std::memory_order_relaxed)) {
  }
}

void ExecutorLog::Heartbeat() { row_.heartbeat_ns.store(MonotonicNs(), std::memory_order_relaxed); }

void ExecutorLog::Progress(uint32_t activity, uint32_t epoch, uint32_t batch) {
  const uint64_t now = MonotonicNs();
  const uint64_t word =
      static_cast<uint64_t>(activity) << 56 | static_cast<uint64_t>(epoch & 0xFFFFFF) << 32 | batch;
  row_.heartbeat_ns.store(now, std::memory_order_relaxed);
  if (row_.progress_word.load(std::memory_order_relaxed) == word) return;
  row_.progress_word.store(word, std::memory_order_relaxed);
  row_.progress_ns.store(now, std::memory_order_relaxed);
}

void ExecutorLog::Add(Counter counter, uint64_t amount) {
  AddTo(row_.counters[static_cast<uint32_t>(counter)], amount);
}

void ExecutorLog::Raise(Counter counter, uint64_t value) {
  std::atomic<uint64_t>& word = row_.counters[static_cast<uint32_t>(counter)];
  if (value > word.load(std::memory_order_relaxed)) word.store(value, std::memory_order_relaxed);
}

void ExecutorLog::RaiseDeviceUse(const DeviceUse& use) {
  Raise(Counter::kHeldTopologyBytes, use.topology_bytes);
  Raise(Counter::kHeldCacheBytes, use.cache_bytes);
  Raise(Counter::kHeldWorkspaceBytes, use.workspace_bytes);
  Raise(Counter::kHeldModelBytes, use.model_bytes);
  Raise(Counter::kCopiedInBytes, use.copied_in_bytes);
  Raise(Counter::kCopiedOutBytes, use.copied_out_bytes);
  Raise(Counter::kRegisteredBytes, use.registered_bytes);
  Raise(Counter::kBesideBytes, use.beside_bytes);
}

void ExecutorLog::AddStage(Stage stage, uint64_t ns) {
  StageTimes& times = row_.stages[static_cast<uint32_t>(stage)];
  const uint64_t count = times.count.load(std::memory_order_relaxed);
  times.recent_ns[count % kRecentDurations].store(ns, std::memory_order_relaxed);
  AddTo(times.buckets[BucketOf(kStageBoundsNs, ns)], 1);
  AddTo(times.busy_ns, ns);
  AddTo(times.count, 1);
}

void ExecutorLog::AddWait(WaitSide side, uint64_t ns) {
  WaitTimes& times = row_.waits[static_cast<uint32_t>(side)];
  AddTo(times.buckets[BucketOf(kWaitBoundsNs, ns)], 1);
  AddTo(times.wait_ns, ns);
  AddTo(times.count, 1);
}

}  // namespace gnnd
