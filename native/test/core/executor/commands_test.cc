#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "core/draw/philox.h"
#include "core/executor/executor.h"
#include "core/ledger/batches.h"
#include "job_harness.h"

// The daemon's commands to running loops, and its view of them.

namespace gnnd::test {
namespace {

uint32_t ActivityOf(const Segment& segment, ExecutorId id) {
  return segment.Snapshot().executors[id.row].activity;
}

uint64_t CounterOf(const Segment& segment, ExecutorId id, Counter counter) {
  return segment.Snapshot().executors[id.row].counters[static_cast<uint32_t>(counter)];
}

}  // namespace

TEST_CASE("a paused job stands still and then goes on as if nothing had been") {
  const NoDeadlines none;
  const FakeJob job;
  Segment segment = MakeSegment(job);
  segment.SetCommand(Command::kPause);
  ThreadCrew crew(segment);
  crew.AddSampler(0);
  crew.AddTrainer(Role::kTrainer, 1);
  for (const size_t i : {0, 1}) {
    CHECK(Eventually([&] {
      return ActivityOf(segment, crew.id(i)) == static_cast<uint32_t>(Activity::kPaused);
    }));
  }
  CHECK(segment.Snapshot().states[0] == job.batches);
  segment.SetCommand(Command::kRun);
  CHECK(crew.Finish());
  CHECK(OutcomeOf(segment) == Expected(job));
}

TEST_CASE("nobody is seen to run before it gave a sign of life") {
  const FakeJob job;
  Segment segment = MakeSegment(job);
  const Result<ExecutorId> id = segment.RegisterExecutor(Role::kSampler, 0);
  REQUIRE(id.ok());
  ExecutorRow& row = segment.executor(id->row);
  std::atomic<uint64_t> round{0};  // odd while the row is made as it was before
  std::atomic<bool> done{false};
  uint64_t silent = 0;
  std::thread daemon([&] {
    while (!done.load()) {
      const uint64_t before = round.load();
      const ExecutorSnapshot seen = segment.Snapshot().executors[id->row];
      const bool is_silent = seen.phase == Phase::kRunning && seen.heartbeat_ns == 0;
      if (is_silent && before % 2 == 0 && round.load() == before) ++silent;
    }
  });
  Executor executor(segment, *id);
  for (int i = 0; i < 100'000; ++i) {
    ++round;
    row.phase.store(static_cast<uint32_t>(Phase::kLoading));
    row.heartbeat_ns.store(0);
    ++round;
    CHECK(executor.Enter().ok());
  }
  done.store(true);
  daemon.join();
  CHECK(silent == 0);
}

TEST_CASE("stopped executors give back what they hold, and others end the job") {
  const NoDeadlines none;
  FakeJob job;
  job.epochs = 2;
  Segment segment = MakeSegment(job);
  {
    ThreadCrew crew(segment);
    crew.AddSampler(0);
    std::atomic<bool> told{false};
    crew.AddTrainer(Role::kTrainer, 1, [&](FakeTrainWork& work) {
      work.before_gradient = [&](uint32_t, uint32_t batch) {
        if (batch == 3 && !told.exchange(true)) segment.SetCommand(Command::kStop);
      };
    });
    CHECK(crew.Finish());
    CHECK(crew.AllEnded(LoopEnd::kStopped));
    CHECK(CountIn(segment, BatchState::kTaken) == 0);
    CHECK(CountIn(segment, BatchState::kClaimed) == 0);
    segment.SetCommand(Command::kRun);
    ThreadCrew next(segment);
    next.AddSampler(0);
    next.AddTrainer(Role::kTrainer, 2);
    CHECK(next.Finish());
    CHECK(OutcomeOf(segment) == Expected(job));
    CHECK(EveryBatchOnce(segment));
  }
}

TEST_CASE("a drain trains what is ready and due, and leaves nothing in anybody's hands") {
  const NoDeadlines none;
  FakeJob job;
  job.batches = 12;
  job.staleness = 2;
  Segment segment = MakeSegment(job);
  ThreadCrew crew(segment);
  crew.AddSampler(0);
  std::atomic<bool> told{false};
  crew.AddTrainer(Role::kTrainer, 1, [&](FakeTrainWork& work) {
    work.before_gradient = [&](uint32_t, uint32_t) {
      // Waits until the queue holds something to drain.
      if (told.exchange(true)) return;
      Eventually([&] { return CountIn(segment, BatchState::kReady) > 2; });
      segment.SetCommand(Command::kDrain);
    };
  });
  CHECK(crew.Finish());
  CHECK(crew.AllEnded(LoopEnd::kStopped));
  CHECK(segment.Version() > 2);
  for (const BatchState state : {BatchState::kClaimed, BatchState::kReady, BatchState::kTaken}) {
    CHECK(CountIn(segment, state) == 0);
  }
}

TEST_CASE("a drain ends although what comes before a held batch is never sampled") {
  const NoDeadlines none;
  for (const bool prefetch : {false, true}) {
    const FakeJob job;
    Segment segment = MakeSegment(job);
    const ExecutorId dead = *segment.RegisterExecutor(Role::kSampler, 5);
    REQUIRE(Batches(segment, dead).Claim() == uint64_t{0});
    ThreadCrew crew(segment);
    crew.prefetch = prefetch;
    crew.AddSampler(0);
    crew.AddTrainer(Role::kTrainer, 1);
    // It holds batch 1, which is not due before batch 0.
    REQUIRE(Eventually([&] {
      return ActivityOf(segment, crew.id(1)) == static_cast<uint32_t>(Activity::kWaitDue);
    }));
    segment.SetCommand(Command::kDrain);
    CHECK(segment.Reclaim(dead.incarnation)->claimed == 1);
    CHECK(crew.Finish());
    CHECK(crew.AllEnded(LoopEnd::kStopped));
    CHECK(CountIn(segment, BatchState::kTaken) == 0);
    CHECK(segment.Version() == 0);
  }
}

TEST_CASE("one executor can be stopped alone") {
  const NoDeadlines none;
  const FakeJob job;
  Segment segment = MakeSegment(job);
  ThreadCrew crew(segment);
  crew.AddSampler(0);
  crew.AddSampler(1);
  segment.SetExecutorCommand(crew.id(1).row, Command::kStop);
  crew.AddTrainer(Role::kTrainer, 2);
  CHECK(crew.Finish());
  CHECK(segment.Complete());
}

TEST_CASE("an abort ends every loop with its reason, also one that evaluates") {
  const NoDeadlines none;
  FakeJob job;
  job.batches = 1;
  Segment segment = MakeSegment(job);
  ThreadCrew crew(segment);
  crew.AddSampler(0);
  crew.AddTrainer(Role::kTrainer, 1, [&](FakeTrainWork& work) {
    work.during_evaluation = [&](const EvalTask&, const Alive& alive) {
      segment.Abort(Code::kNumericDivergence, "the loss is not finite");
      CHECK_FALSE(alive());
    };
  });
  CHECK_FALSE(crew.Finish());
  CHECK(crew.FirstError().ok());  // aborted, both of them
  CHECK(segment.AbortStatus().message() == "the loss is not finite");
}

TEST_CASE("a record that is not what the ledger says ends its Trainer with the reason") {
  const FakeJob job;
  Segment segment = MakeSegment(job);
  ThreadCrew crew(segment);
  const ExecutorId id = *segment.RegisterExecutor(Role::kSampler, 0);
  Batches batches(segment, id);
  REQUIRE(batches.Claim() == uint64_t{0});
  FakeSampleWork work(segment);
  SampleReport report;
  REQUIRE(work.Sample({0, 3, segment.slot(0)}, &report).ok());  // batch 3 where 0 must be
  REQUIRE(batches.Publish(0, report.payload_bytes).ok());
  crew.AddTrainer(Role::kTrainer, 1);
  CHECK_FALSE(crew.Finish());
  CHECK(crew.FirstError().code() == Code::kShmCorrupted);
  CHECK(CounterOf(segment, crew.id(0), Counter::kCorruptRecords) == 1);
}

TEST_CASE("where the profit rule refuses, a standby trains nothing; with ALWAYS it does") {
  const NoDeadlines none;
  for (const bool always : {false, true}) {
    FakeJob job;
    job.batches = 20;
    Segment segment = MakeSegment(job);
    segment.SetStandby(always ? StandbyPolicy::kAlways : StandbyPolicy::kAuto, true);
    segment.SetEstimates(StandbyEstimates{1, 1, kNsPerSecond, 1});  // a hopelessly slow standby
    ThreadCrew crew(segment);
    crew.AddSampler(0);
    crew.AddTrainer(Role::kStandby, 0);
    // The normal Trainer comes when the Sampler has lent its device, or found no reason to.
    const uint64_t slots = segment.shape().num_slots;
    CHECK(Eventually([&] {
      return always ? CounterOf(segment, crew.id(1), Counter::kStandbyTakes) > 0
                    : CountIn(segment, BatchState::kReady) == slots;
    }));
    crew.AddTrainer(Role::kTrainer, 1);
    CHECK(crew.Finish());
    CHECK((CounterOf(segment, crew.id(1), Counter::kStandbyTakes) > 0) == always);
    CHECK(OutcomeOf(segment) == Expected(job));
  }
}

TEST_CASE("a Sampler that is gone for good leaves its device's standby an ordinary Trainer") {
  const NoDeadlines none;
  FakeJob job;
  Segment segment = MakeSegment(job);
  segment.SetStandby(StandbyPolicy::kOff, false);
  ThreadCrew crew(segment);
  crew.AddTrainer(Role::kStandby, 0);
  crew.AddSampler(1);
  segment.MarkSamplerGone(0);
  CHECK(crew.Finish());
  CHECK(OutcomeOf(segment) == Expected(job));
}

TEST_CASE("a trial epoch runs with its reserved number, its limit, and without evaluation") {
  const NoDeadlines none;
  FakeJob job;
  job.epochs = 1;
  job.evaluates = false;
  SegmentSpec spec = job.Spec();
  spec.first_epoch = kTrialEpoch;
  spec.batch_limit = 4;
  Result<UniqueFd> fd = Segment::Create(spec);
  REQUIRE(fd.ok());
  Result<Segment> segment = Segment::Attach(fd->get(), Access::kReadWrite);
  REQUIRE(segment.ok());
  ThreadCrew crew(*segment);
  std::atomic<bool> right{true};
  crew.AddSampler(0, [&](uint32_t epoch, uint32_t batch) {
    if (epoch != kTrialEpoch || batch > 3) right = false;
  });
  crew.AddTrainer(Role::kTrainer, 1);
  CHECK(crew.Finish());
  CHECK(right);
  const EpochReport report = segment->ReportEpoch(0);
  CHECK(report.batches == 4);
  CHECK(report.epoch == kTrialEpoch);
  CHECK(report.ledger_digest == ExpectedLedgerDigest(kTrialEpoch, 4));
  CHECK_FALSE(report.evaluation.has_value());
  const SegmentSnapshot snapshot = segment->Snapshot();
  CHECK(snapshot.complete);
  CHECK(snapshot.executors[0].counters[static_cast<uint32_t>(Counter::kBatchesSampled)] == 4);
  CHECK(snapshot.executors[1].counters[static_cast<uint32_t>(Counter::kStepsApplied)] == 4);
  CHECK(snapshot.executors[1].phase == Phase::kFinished);
  CHECK(snapshot.executors[0].stages[static_cast<uint32_t>(Stage::kSample)].count == 4);
}

TEST_CASE("a slot that grew far beyond the usual record gives its pages back") {
  const NoDeadlines none;
  FakeJob job;
  job.num_slots = 2;
  Segment segment = MakeSegment(job);
  // Pretends that slot 1 once held a record of 100 pages.
  segment.slot_entry(1).peak_bytes.store(100 * kPageBytes);
  std::memset(segment.slot(1).data() + kFakeSlotBytes - 8, 0x5A, 8);
  ThreadCrew crew(segment);
  crew.AddSampler(0);
  crew.AddTrainer(Role::kTrainer, 1);
  CHECK(crew.Finish());
  CHECK(CounterOf(segment, crew.id(0), Counter::kSlotsTrimmed) == 1);
  CHECK(segment.slot(1).back() == std::byte{0});
  CHECK(OutcomeOf(segment) == Expected(job));
}

TEST_CASE("a row that is another incarnation's, or was reaped, is no entrance") {
  Segment segment = MakeSegment(FakeJob{});
  const ExecutorId id = *segment.RegisterExecutor(Role::kSampler, 0);
  FakeSampleWork work(segment);
  CHECK(RunSamplerLoop(segment, ExecutorId{id.row, id.incarnation + 1}, work).status().code() ==
        Code::kInternal);
  REQUIRE(segment.Reclaim(id.incarnation).ok());
  CHECK(RunSamplerLoop(segment, id, work).status().code() == Code::kInternal);
}

}  // namespace gnnd::test
