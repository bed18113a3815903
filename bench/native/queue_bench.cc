// Measures the queue between two processes: how fast records change hands, beside a plain memcpy of
// the same bytes into private memory and into memory like the slots' (a memfd, shared), and how
// soon a sleeping Trainer gets a batch that was just published.
//
//   queue_bench [--records N] [--megabytes M] [--slots S] [--wakeups W]
//
// The producer copies each record from private memory into its slot and publishes it; the consumer
// takes it, touches one word per page, marks it trained and commits. Slots are warm: every page was
// touched before the clock starts. Prints a table on stderr and one JSON object a line on stdout.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/base/memfd.h"
#include "core/ledger/batches.h"
#include "core/ledger/segment.h"

namespace gnnd {
namespace {

struct Options {
  uint64_t records = 128;
  uint64_t megabytes = 16;
  uint64_t slots = 4;
  uint64_t wakeups = 2000;
};

Segment MakeSegment(uint64_t batches, uint64_t slots, uint64_t slot_bytes) {
  SegmentSpec spec;
  spec.batches_per_epoch = batches;
  spec.epochs = 1;
  spec.num_slots = slots;
  spec.slot_bytes = slot_bytes;
  spec.queue_max_bytes = uint64_t{1} << 50;
  spec.parameter_floats = 1;
  spec.max_executors = 2;
  spec.batch_size = 1;
  spec.train_nodes = batches;
  Result<UniqueFd> fd = Segment::Create(spec);
  GNND_CHECK(fd.ok());
  Result<Segment> segment = Segment::Attach(fd->get(), Access::kReadWrite);
  GNND_CHECK(segment.ok());
  return std::move(*segment);
}

// Takes the next batch, sleeping until there is one.
uint64_t WaitAndTake(Segment& segment, Batches& batches) {
  while (true) {
    const uint32_t seen = segment.queue().trainer_event.word.Load();
    const std::optional<uint64_t> batch = batches.Take(Batches::Which::kAny);
    if (batch) return *batch;
    segment.queue().trainer_event.word.Wait(seen, kNsPerSecond);
  }
}

uint64_t WaitAndClaim(Segment& segment, Batches& batches) {
  while (true) {
    const uint32_t seen = segment.queue().sampler_event.word.Load();
    const std::optional<uint64_t> batch = batches.Claim();
    if (batch) return *batch;
    segment.queue().sampler_event.word.Wait(seen, kNsPerSecond);
  }
}

void Commit(Segment& segment, Batches& batches, uint64_t batch) {
  GNND_CHECK(batches.MarkTrained(batch).ok());
  segment.header().version.value.fetch_add(1, std::memory_order_acq_rel);
  segment.WakeSamplers();
}

// Runs `body` in a child process.
template <typename Body>
pid_t Spawn(Body body) {
  const pid_t child = fork();
  GNND_CHECK(child >= 0);
  if (child == 0) {
    body();
    _exit(0);
  }
  return child;
}

void Join(pid_t child) {
  int status = 0;
  GNND_CHECK(waitpid(child, &status, 0) == child && status == 0);
}

double GigabytesPerSecond(uint64_t bytes, uint64_t ns) {
  return static_cast<double>(bytes) / static_cast<double>(ns);
}

// Plain copies between private buffers, both warm, cycling through as many targets as slots.
double MeasureMemcpy(const Options& options, uint64_t bytes) {
  std::vector<std::byte> source(bytes, std::byte{1});
  std::vector<std::vector<std::byte>> targets(options.slots, std::vector<std::byte>(bytes));
  const uint64_t start_ns = MonotonicNs();
  for (uint64_t i = 0; i < options.records; ++i) {
    std::memcpy(targets[i % options.slots].data(), source.data(), bytes);
    asm volatile("" ::"r"(targets[i % options.slots].data()) : "memory");
  }
  return GigabytesPerSecond(bytes * options.records, MonotonicNs() - start_ns);
}

// MeasureMemcpy into shared memory of a memfd, like a segment's.
double MeasureSharedMemcpy(const Options& options, uint64_t bytes) {
  std::vector<std::byte> source(bytes, std::byte{1});
  const Result<UniqueFd> fd = CreateMemfd("queue-bench", bytes * options.slots);
  GNND_CHECK(fd.ok());
  const Result<Mapping> targets = Mapping::Map(fd->get(), true);
  GNND_CHECK(targets.ok());
  std::memset(targets->data(), 1, targets->size());
  const uint64_t start_ns = MonotonicNs();
  for (uint64_t i = 0; i < options.records; ++i) {
    std::byte* const target = targets->data() + i % options.slots * bytes;
    std::memcpy(target, source.data(), bytes);
    asm volatile("" ::"r"(target) : "memory");
  }
  return GigabytesPerSecond(bytes * options.records, MonotonicNs() - start_ns);
}

double MeasureHandOff(const Options& options, uint64_t bytes) {
  Segment segment = MakeSegment(options.records, options.slots, bytes);
  for (uint64_t slot = 0; slot < options.slots; ++slot) {
    std::memset(segment.slot(slot).data(), 1, bytes);
  }
  std::vector<std::byte> source(bytes, std::byte{2});
  const ExecutorId sampler = *segment.RegisterExecutor(Role::kSampler, 0);
  const ExecutorId trainer = *segment.RegisterExecutor(Role::kTrainer, 0);
  const pid_t consumer = Spawn([&] {
    Batches batches(segment, trainer);
    for (uint64_t i = 0; i < options.records; ++i) {
      const uint64_t batch = WaitAndTake(segment, batches);
      const std::span<const std::byte> slot = segment.slot(segment.shape().SlotOf(batch));
      for (uint64_t at = 0; at < bytes; at += kPageBytes) GNND_CHECK(slot[at] == std::byte{2});
      Commit(segment, batches, batch);
    }
  });
  // The writer's own page tables are warm, too: it touched the slots above.
  Batches batches(segment, sampler);
  const uint64_t start_ns = MonotonicNs();
  for (uint64_t i = 0; i < options.records; ++i) {
    const uint64_t batch = WaitAndClaim(segment, batches);
    std::memcpy(segment.slot(segment.shape().SlotOf(batch)).data(), source.data(), bytes);
    GNND_CHECK(batches.Publish(batch, bytes).ok());
  }
  Join(consumer);
  return GigabytesPerSecond(bytes * options.records, MonotonicNs() - start_ns);
}

// Nanoseconds from just before Publish until the consumer, asleep before, has taken the batch.
std::vector<uint64_t> MeasureWakeUps(const Options& options) {
  Segment segment = MakeSegment(options.wakeups, 1, kPageBytes);
  const ExecutorId sampler = *segment.RegisterExecutor(Role::kSampler, 0);
  const ExecutorId trainer = *segment.RegisterExecutor(Role::kTrainer, 0);
  const uint64_t result_bytes = options.wakeups * sizeof(uint64_t);
  void* memory =
      mmap(nullptr, result_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  GNND_CHECK(memory != MAP_FAILED);
  auto* latencies = static_cast<uint64_t*>(memory);
  const pid_t consumer = Spawn([&] {
    Batches batches(segment, trainer);
    for (uint64_t i = 0; i < options.wakeups; ++i) {
      const uint64_t batch = WaitAndTake(segment, batches);
      const uint64_t now = MonotonicNs();
      uint64_t published_ns = 0;
      std::memcpy(&published_ns, segment.slot(0).data(), sizeof published_ns);
      latencies[i] = now - published_ns;
      Commit(segment, batches, batch);
    }
  });
  Batches batches(segment, sampler);
  for (uint64_t i = 0; i < options.wakeups; ++i) {
    const uint64_t batch = WaitAndClaim(segment, batches);
    usleep(200);  // until the consumer sleeps
    const uint64_t now = MonotonicNs();
    std::memcpy(segment.slot(0).data(), &now, sizeof now);
    GNND_CHECK(batches.Publish(batch, sizeof now).ok());
  }
  Join(consumer);
  std::vector<uint64_t> sorted(latencies, latencies + options.wakeups);
  munmap(memory, result_bytes);
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

bool Parse(int argc, char** argv, Options* options) {
  const std::pair<const char*, uint64_t*> names[] = {{"--records", &options->records},
                                                     {"--megabytes", &options->megabytes},
                                                     {"--slots", &options->slots},
                                                     {"--wakeups", &options->wakeups}};
  for (int i = 1; i < argc; i += 2) {
    const auto* found = std::find_if(std::begin(names), std::end(names), [&](const auto& name) {
      return std::strcmp(name.first, argv[i]) == 0;
    });
    char* end = nullptr;
    const uint64_t value = i + 1 < argc ? std::strtoull(argv[i + 1], &end, 10) : 0;
    if (found == std::end(names) || value == 0 || *end != '\0') {
      std::fprintf(stderr, "%s: unknown option or bad value\n", argv[i]);
      return false;
    }
    *found->second = value;
  }
  return true;
}

int Main(int argc, char** argv) {
  Options options;
  if (!Parse(argc, argv, &options)) return 64;
  const uint64_t bytes = options.megabytes << 20;
  // Interleaved, so that all meet the same state of the machine; the best of each counts.
  constexpr int kRounds = 7;
  double copy = 0;
  double shared_copy = 0;
  double hand_off = 0;
  for (int round = 0; round < kRounds; ++round) {
    copy = std::max(copy, MeasureMemcpy(options, bytes));
    shared_copy = std::max(shared_copy, MeasureSharedMemcpy(options, bytes));
    hand_off = std::max(hand_off, MeasureHandOff(options, bytes));
  }
  const std::vector<uint64_t> wakeups = MeasureWakeUps(options);
  const double median_us = static_cast<double>(wakeups[wakeups.size() / 2]) / 1e3;
  const double p99_us = static_cast<double>(wakeups[wakeups.size() * 99 / 100]) / 1e3;
  std::fprintf(stderr, "%-28s %10s\n", "records",
               (std::to_string(options.megabytes) + " MiB").c_str());
  std::fprintf(stderr, "%-28s %10.2f GB/s\n", "memcpy, private", copy);
  std::fprintf(stderr, "%-28s %10.2f GB/s\n", "memcpy, memfd", shared_copy);
  std::fprintf(stderr, "%-28s %10.2f GB/s\n", "hand-off, copy included", hand_off);
  std::fprintf(stderr, "%-28s %10.2f\n", "hand-off / memcpy, private", hand_off / copy);
  std::fprintf(stderr, "%-28s %10.2f\n", "hand-off / memcpy, memfd", hand_off / shared_copy);
  std::fprintf(stderr, "%-28s %10.1f us\n", "publish to take, median", median_us);
  std::fprintf(stderr, "%-28s %10.1f us\n", "publish to take, p99", p99_us);
  std::printf(
      "{\"bench\":\"queue_hand_off\",\"record_bytes\":%llu,\"records\":%llu,\"slots\":%llu,"
      "\"memcpy_gb_per_s\":%.3f,\"shared_memcpy_gb_per_s\":%.3f,\"hand_off_gb_per_s\":%.3f,"
      "\"ratio\":%.3f,\"shared_ratio\":%.3f}\n",
      static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(options.records),
      static_cast<unsigned long long>(options.slots), copy, shared_copy, hand_off, hand_off / copy,
      hand_off / shared_copy);
  std::printf("{\"bench\":\"queue_wake_up\",\"samples\":%zu,\"median_us\":%.2f,\"p99_us\":%.2f}\n",
              wakeups.size(), median_us, p99_us);
  return 0;
}

}  // namespace
}  // namespace gnnd

int main(int argc, char** argv) { return gnnd::Main(argc, argv); }
