#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

#include "core/ledger/batches.h"
#include "job_harness.h"

// A Sampler whose work overlaps: it has two batches in hand, the first of which is being copied
// while the second one is computed.

namespace gnnd::test {
namespace {

using std::chrono::milliseconds;

ExecutorId NewSampler(Segment& segment, uint32_t device) {
  const Result<ExecutorId> id = segment.RegisterExecutor(Role::kSampler, device);
  GNND_CHECK(id.ok());
  return *id;
}

std::string Number(uint32_t batch) { return std::to_string(batch); }

// Notes what it is asked for; of depth 2.
class NotingWork final : public SampleWork {
 public:
  explicit NotingWork(const Segment& segment) : inner_(segment) {}

  uint32_t depth() const override { return 2; }
  Status Start(const SampleTask& task) override {
    calls += " s" + Number(task.batch);
    return inner_.Start(task);
  }
  Status Finish(const SampleTask& task, SampleReport* report) override {
    calls += " f" + Number(task.batch);
    return inner_.Finish(task, report);
  }

  std::string calls;

 private:
  FakeSampleWork inner_;
};

}  // namespace

TEST_CASE("a batch is started before the one before it is finished, as far as slots and bytes go") {
  struct Case {
    uint64_t slots;
    uint64_t bytes;
    const char* calls;
  };
  const Case cases[] = {
      {4, uint64_t{1} << 40, " s0 s1 f0 s2 f1 s3 f2 f3"},
      {3, uint64_t{1} << 40, " s0 s1 f0 s2 f1 f2"},
      {1, uint64_t{1} << 40, " s0 f0"},
      // Nothing is known of sizes before the first record; then one byte is too few for any.
      {4, 1, " s0 s1 f0 f1"},
  };
  for (const Case& it : cases) {
    FakeJob job;
    job.num_slots = it.slots;
    job.queue_max_bytes = it.bytes;
    Segment segment = MakeSegment(job);
    const ExecutorId id = NewSampler(segment, 0);
    NotingWork work(segment);
    Result<LoopEnd> end = LoopEnd::kComplete;
    std::thread loop([&] { end = RunSamplerLoop(segment, id, work); });
    CHECK(Eventually([&] {
      return segment.executor(id.row).progress_word.load() >> 56 ==
             static_cast<uint64_t>(Activity::kWaitEnqueue);
    }));
    CHECK(CountIn(segment, BatchState::kClaimed) == 0);
    segment.SetCommand(Command::kStop);
    loop.join();
    CHECK(end.ok());
    CHECK(work.calls == it.calls);
  }
}

TEST_CASE("what is in hand is finished before a Sampler pauses or stops, and dropped by an abort") {
  for (const Command command : {Command::kPause, Command::kDrain, Command::kStop}) {
    const FakeJob job;
    Segment segment = MakeSegment(job);
    const ExecutorId id = NewSampler(segment, 0);
    FakeSampleWork work(segment);
    work.work_depth = 2;
    work.before = [&](uint32_t, uint32_t batch) {
      if (batch == 1) segment.SetExecutorCommand(id.row, command);
    };
    Result<LoopEnd> end = LoopEnd::kComplete;
    std::thread loop([&] { end = RunSamplerLoop(segment, id, work); });
    CHECK(Eventually([&] { return CountIn(segment, BatchState::kReady) == 2; }));
    if (command == Command::kPause) segment.SetExecutorCommand(id.row, Command::kStop);
    loop.join();
    CHECK(*end == LoopEnd::kStopped);
    CHECK(CountIn(segment, BatchState::kReady) == 2);
    CHECK(CountIn(segment, BatchState::kClaimed) == 0);
    CHECK(work.most_started == 2);
    CHECK_FALSE(work.abandoned);
  }
  Segment segment = MakeSegment(FakeJob{});
  FakeSampleWork work(segment);
  work.work_depth = 2;
  work.before = [&](uint32_t, uint32_t batch) {
    if (batch == 1) segment.Abort(Code::kInternal, "enough");
  };
  const Result<LoopEnd> end = RunSamplerLoop(segment, NewSampler(segment, 0), work);
  CHECK(end.status().code() == Code::kAborted);
  CHECK(work.abandoned);
}

TEST_CASE("the time that two batches shared is counted once") {
  // 10 ns to start a batch, 100 ns to finish it.
  class TimedWork final : public SampleWork {
   public:
    explicit TimedWork(const Segment& segment) : inner_(segment) {}
    uint32_t depth() const override { return 2; }
    Status Start(const SampleTask& task) override {
      failpoint::PassNs(10'000);
      return inner_.Start(task);
    }
    Status Finish(const SampleTask& task, SampleReport* report) override {
      failpoint::PassNs(100'000);
      GNND_TRY(inner_.Finish(task, report));
      report->copy_ns = 60'000;
      return Status::Ok();
    }

   private:
    FakeSampleWork inner_;
  };
  failpoint::MakeTime(true);
  FakeJob job;
  job.num_slots = 3;
  Segment segment = MakeSegment(job);
  const ExecutorId id = NewSampler(segment, 0);
  TimedWork work(segment);
  std::thread loop([&] { CHECK(RunSamplerLoop(segment, id, work).ok()); });
  CHECK(Eventually([&] { return CountIn(segment, BatchState::kReady) == 3; }));
  segment.SetCommand(Command::kStop);
  loop.join();
  failpoint::MakeTime(false);
  const auto& stages = segment.executor(id.row).stages;
  const uint64_t sampled = stages[static_cast<uint32_t>(Stage::kSample)].busy_ns.load();
  const uint64_t copied = stages[static_cast<uint32_t>(Stage::kCopy)].busy_ns.load();
  CHECK((sampled + copied) / 1000 == 3 * 110);  // looks take some ns
  CHECK(copied / 1000 == 3 * 60);
}

// Not under ThreadSanitizer, which rightly reports the races that the dropped rules make.
#ifndef __SANITIZE_THREAD__

TEST_CASE("a Sampler waits and lends its device with empty hands") {
  constexpr milliseconds kPatience{400};
  constexpr milliseconds kLong{20000};
  for (const char* rule : {"", "waits-empty-handed"}) {
    for (const bool lends : {false, true}) {
      INFO(rule, lends ? " lends" : " waits");
      failpoint::Break(rule);
      FakeJob job;
      job.num_slots = lends ? 2 : 1;
      Segment segment = MakeSegment(job);
      segment.SetStandby(StandbyPolicy::kAlways, true);
      ThreadCrew crew(segment);
      crew.depth = 2;
      crew.AddSampler(0);
      crew.AddTrainer(lends ? Role::kStandby : Role::kTrainer, lends ? 0 : 1);
      const bool finished = crew.Finish(*rule == 0 ? kLong : kPatience);
      failpoint::Break("");
      const bool right = finished && segment.Complete() && EveryBatchOnce(segment) &&
                         OutcomeOf(segment) == Expected(job) && crew.collisions() == 0;
      CHECK(right == (*rule == 0));
      if (!lends) CHECK(finished == (*rule == 0));
      if (lends) CHECK((crew.collisions() > 0) == (*rule != 0));
    }
  }
}

#endif

}  // namespace gnnd::test
