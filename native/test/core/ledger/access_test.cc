#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/ledger/batches.h"
#include "core/ledger/executor_log.h"
#include "core/ledger/segment.h"
#include "core/ledger/turn.h"

// Tests which parts of the segment an executor may write, and that any other write ends it at once.

namespace gnnd {
namespace {

UniqueFd MakeFile() {
  SegmentSpec spec;
  spec.batches_per_epoch = 64;
  spec.epochs = 2;
  spec.group = 2;
  spec.staleness = 1;
  spec.num_slots = 64;
  spec.slot_bytes = 10'000;
  spec.queue_max_bytes = 1'000'000;
  spec.parameter_floats = 20;
  spec.optimizer_floats = 40;
  spec.num_devices = 2;
  spec.max_executors = 40;
  spec.batch_size = 10;
  spec.train_nodes = 640;
  Result<UniqueFd> fd = Segment::Create(spec);
  REQUIRE(fd.ok());
  return std::move(*fd);
}

Segment AttachTo(int fd, Access access) {
  Result<Segment> segment = Segment::Attach(fd, access);
  REQUIRE(segment.ok());
  return std::move(*segment);
}

// The signal that a process gets which writes a byte at `address`, 0 = none. The byte stays as it
// is.
int SignalOfWriteTo(void* address) {
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    for (const int number : {SIGSEGV, SIGBUS}) std::signal(number, SIG_DFL);
    auto* byte = static_cast<volatile unsigned char*>(address);
    *byte = *byte;
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

using Place = std::pair<const char*, void*>;

// First and last byte of each part that decides what the model becomes.
std::vector<Place> ModelOf(const Segment& segment) {
  std::vector<Place> places = {{"magic", &segment.header().magic},
                               {"config", &segment.header().config},
                               {"mutex", &segment.header().mutex},
                               {"commit word", &segment.header().version},
                               {"evaluation", &segment.header().evaluation},
                               {"command", &segment.header().command},
                               {"abort message", segment.header().abort_message},
                               {"epoch", &segment.epoch(1)},
                               {"sums", &segment.sums(1)},
                               {"devices of an epoch", segment.epoch_devices(1).data()},
                               {"devices", segment.sum_devices(1).data()},
                               {"hand-in", &segment.hand_in(3)}};
  const auto add = [&places](const char* name, std::span<float> part) {
    places.emplace_back(name, part.data());
    places.emplace_back(name, &part.back());
  };
  for (uint64_t v = 0; v < segment.shape().ParameterBuffers(); ++v) {
    add("parameters", segment.parameters(v));
  }
  for (uint64_t v = 0; v < 2; ++v) add("optimizer", segment.optimizer(v));
  for (uint64_t i = 0; i < segment.shape().RingEntries(); ++i) add("gradient", segment.gradient(i));
  for (uint32_t buffer = 0; buffer < 2; ++buffer) add("best", segment.best(buffer));
  return places;
}

}  // namespace

TEST_CASE("a Sampler cannot write parameters, gradients, steps or reports") {
  const UniqueFd fd = MakeFile();
  const Segment sampler = AttachTo(fd.get(), Access::kModelReadOnly);
  for (const auto& [name, address] : ModelOf(sampler)) {
    INFO(name);
    CHECK(SignalOfWriteTo(address) == SIGSEGV);
  }
  for (uint64_t slot : {0, 63}) CHECK(SignalOfWriteTo(sampler.slot(slot).data()) == 0);
}

TEST_CASE("a Trainer cannot write records, and can write the model") {
  const UniqueFd fd = MakeFile();
  const Segment trainer = AttachTo(fd.get(), Access::kSlotsReadOnly);
  for (uint64_t slot : {0, 63}) {
    CHECK(SignalOfWriteTo(&trainer.slot(slot).front()) == SIGSEGV);
    CHECK(SignalOfWriteTo(&trainer.slot(slot).back()) == SIGSEGV);
  }
  for (const auto& [name, address] : ModelOf(trainer)) {
    INFO(name);
    CHECK(SignalOfWriteTo(address) == 0);
  }
}

TEST_CASE("with the model protected, a Sampler can do all that it has to") {
  const UniqueFd fd = MakeFile();
  Segment daemon = AttachTo(fd.get(), Access::kReadWrite);
  const ExecutorId id = *daemon.RegisterExecutor(Role::kSampler, 0);
  Segment segment = AttachTo(fd.get(), Access::kModelReadOnly);
  ExecutorLog log(segment, id);
  log.SetPid(1);
  log.Progress(0, 0, 0);
  Turn(segment, 0).SamplerEnters();
  Batches batches(segment, id);
  REQUIRE(batches.Claim() == uint64_t{0});
  segment.slot(0).front() = std::byte{1};
  CHECK(batches.Publish(0, 100).ok());
  segment.WakeAll();
  Turn(segment, 0).SamplerLeaves();
  CHECK(daemon.ReportEpoch(0).start_ns > 0);
  CHECK(daemon.Snapshot().queue_depth == 1);
}

TEST_CASE("several dead executors are reclaimed at once, each exactly") {
  const UniqueFd fd = MakeFile();
  Segment segment = AttachTo(fd.get(), Access::kReadWrite);
  constexpr size_t kDead = 32;
  std::vector<ExecutorId> dead;
  for (size_t i = 0; i < kDead; ++i) {
    dead.push_back(*segment.RegisterExecutor(i % 2 == 0 ? Role::kSampler : Role::kStandby, 0));
  }
  // Every Sampler holds two claims, every standby has taken one batch of its neighbour's first two.
  for (size_t i = 0; i < kDead; i += 2) {
    Batches sampler(segment, dead[i]);
    for (int n = 0; n < 4; ++n) {
      const std::optional<uint64_t> batch = sampler.Claim();
      REQUIRE(batch.has_value());
      if (n < 2) REQUIRE(sampler.Publish(*batch, 100).ok());
    }
    REQUIRE(Batches(segment, dead[i + 1]).Take(Batches::Which::kAny).has_value());
  }
  std::vector<ReclaimReport> reports(kDead);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kDead; ++i) {
    threads.emplace_back([&, i] { reports[i] = *segment.Reclaim(dead[i].incarnation); });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kDead; ++i) {
    CHECK(reports[i].claimed == (i % 2 == 0 ? 2 : 0));
    CHECK(reports[i].taken == (i % 2 == 0 ? 0 : 1));
  }
  const SegmentSnapshot snapshot = segment.Snapshot();
  CHECK(snapshot.states[static_cast<uint32_t>(BatchState::kPending)] == 32);
  CHECK(snapshot.states[static_cast<uint32_t>(BatchState::kReady)] == 32);
  CHECK(snapshot.reclaimed == 48);
  CHECK(snapshot.turns[0] == 0);
}

}  // namespace gnnd
