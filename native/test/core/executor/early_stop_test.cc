#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <vector>

#include "core/ledger/batches.h"
#include "job_harness.h"
#include "process_crew.h"

// Jobs that an evaluation ends: what was sampled of the next epoch is thrown away, by everybody.

namespace gnnd::test {
namespace {

FakeJob Stopping() {
  FakeJob job;
  job.epochs = 9;
  job.staleness = 1;
  return StoppingEarly(job, {2, 0});
}

// Whether any executor still owns a batch, or a chunk of an evaluation.
bool AnythingOwned(const Segment& segment) {
  for (uint64_t index = 0; index < segment.config().batches_per_epoch; ++index) {
    if (LedgerWord::Unpack(segment.ledger(index).load()).owner != 0) return true;
  }
  for (uint32_t chunk = 0; chunk < segment.config().eval_chunks; ++chunk) {
    if (LedgerWord::Unpack(segment.eval_word(chunk).load()).owner != 0) return true;
  }
  return false;
}

void CheckStopped(const Segment& segment, const FakeJob& job) {
  const Outcome expected = Expected(job);
  const auto epochs = static_cast<uint32_t>(expected.loss_sums.size());
  CHECK(segment.Complete());
  CHECK(segment.EpochsToTrain() == epochs);
  CHECK(EveryBatchOnce(segment));
  CHECK(OutcomeOf(segment) == expected);
  CHECK_FALSE(AnythingOwned(segment));
  CHECK(QueueBytes(segment) == 0);
  const SegmentSnapshot snapshot = segment.Snapshot();
  CHECK(snapshot.complete);
  CHECK(snapshot.epochs_to_train == epochs);
  CHECK(snapshot.epoch == epochs - 1);
  CHECK(snapshot.committed_batches == snapshot.total_batches);
  CHECK(snapshot.total_batches == epochs * job.batches);
  CHECK(snapshot.queue_depth == 0);
}

// Two Trainers; `during` runs in the first chunk of the evaluation that will stop the job.
void RunWithEvaluator(const FakeJob& job, Segment& segment, ThreadCrew& crew,
                      std::function<void()> during) {
  const uint64_t last = Expected(job).loss_sums.size() * segment.shape().GroupsPerEpoch();
  for (const uint32_t device : {2U, 3U}) {
    crew.AddTrainer(Role::kTrainer, device, [&segment, last, during](FakeTrainWork& work) {
      work.during_evaluation = [&segment, last, during](const EvalTask& task, const Alive&) {
        const bool first = task.phase == 0 && task.chunk == 0;
        if (first && task.run.nodes == EvalNodes::kValidation && segment.Version() == last) {
          during();
        }
      };
    });
  }
}

}  // namespace

TEST_CASE("batches that are CLAIMED or READY when an evaluation stops the job are waste") {
  const FakeJob job = Stopping();
  const auto next = static_cast<uint32_t>(Expected(job).loss_sums.size());
  Segment segment = MakeSegment(job);
  ThreadCrew crew(segment);
  const auto before = [&](uint32_t epoch, uint32_t batch) {
    if (epoch == next && batch == 2) Eventually([&] { return segment.Complete(); });
  };
  bool all_there = false;
  RunWithEvaluator(job, segment, crew, [&] {
    all_there = Eventually([&] {
      return CountIn(segment, BatchState::kClaimed) > 0 && CountIn(segment, BatchState::kReady) > 0;
    });
    CHECK(QueueBytes(segment) > 0);
  });
  crew.AddSampler(0, before);
  crew.AddSampler(1, before);
  REQUIRE(crew.Finish());
  CHECK(all_there);
  CHECK(crew.AllEnded(LoopEnd::kComplete));
  CheckStopped(segment, job);
}

TEST_CASE("a job whose patience never runs out trains all its epochs") {
  FakeJob job = Stopping();
  job.early_stop.patience = job.epochs;
  Segment segment = MakeSegment(job);
  ThreadCrew crew(segment);
  crew.AddSampler(0);
  crew.AddTrainer(Role::kTrainer, 1);
  REQUIRE(crew.Finish());
  CheckStopped(segment, job);
  CHECK(segment.EpochsToTrain() == job.epochs);
}

TEST_CASE("a margin stops a job sooner, and the best epoch is still the best") {
  FakeJob job = Stopping();
  job.early_stop.min_delta = 0.35;
  CHECK(Expected(job).loss_sums.size() <= Expected(Stopping()).loss_sums.size());
  Segment segment = MakeSegment(job);
  ThreadCrew crew(segment);
  crew.AddSampler(0);
  crew.AddTrainer(Role::kTrainer, 1);
  REQUIRE(crew.Finish());
  CheckStopped(segment, job);
}

#ifndef __SANITIZE_THREAD__

TEST_CASE("a batch that waits for the evaluation which stops the job is never trained") {
  for (const char* rule : {"", "stop-ends-training"}) {
    INFO(std::string(rule));
    failpoint::Break(rule);
    const FakeJob job = Stopping();
    Segment segment = MakeSegment(job);
    const auto last = static_cast<uint32_t>(Expected(job).loss_sums.size()) - 1;
    std::atomic<bool> looks{false};
    std::atomic<bool> waits{false};
    ThreadCrew crew(segment);
    // One Trainer ends the epoch that will be the last. The other has just seen that it had not
    // ended, takes a batch of the next, and has just seen that there is no end.
    const auto overtaken = [&] {
      looks = true;
      Eventually([&] { return segment.OpenRun() && CountIn(segment, BatchState::kReady) > 0; });
      failpoint::Arm("hold.before_due", 1, [&] {
        waits = true;
        Eventually([&] { return segment.EpochsToTrain() < job.epochs; });
      });
    };
    for (const uint32_t device : {2U, 3U}) {
      crew.AddTrainer(Role::kTrainer, device, [&](FakeTrainWork& work) {
        work.before_gradient = [&](uint32_t epoch, uint32_t batch) {
          if (epoch != last || batch + 1 != job.batches) return;
          failpoint::Arm("look.before_take", 1, overtaken);
          Eventually([&] {
            segment.WakeTrainers();
            return looks.load();
          });
        };
        work.during_evaluation = [&](const EvalTask& task, const Alive&) {
          if (task.run.epoch == last) Eventually([&] { return waits.load(); });
        };
      });
    }
    crew.AddSampler(0);
    const bool finished = crew.Finish(std::chrono::milliseconds(*rule == 0 ? 20000 : 400));
    failpoint::Arm("", 0);
    failpoint::Break("");
    CHECK((finished && OutcomeOf(segment) == Expected(job)) == (*rule == 0));
    if (*rule == 0) CheckStopped(segment, job);
  }
}

TEST_CASE("a Trainer killed in the evaluation that stops the job changes neither end nor model") {
  const NoDeadlines none;
  const FakeJob job = Stopping();
  const auto last = static_cast<int>(Expected(job).loss_sums.size());
  for (const char* point : {"evaluate.after_take", "evaluate.before_result", "evaluate.before_done",
                            "evaluate.after_done", "evaluate.before_end", "evaluate.before_commit",
                            "evaluate.after_commit"}) {
    for (const bool stop_there : {false, true}) {
      for (const uint32_t samplers : {1U, 3U}) {
        INFO(point, " samplers=", samplers);
        Segment segment = MakeSegment(job);
        ProcessCrew crew(segment);
        for (uint32_t i = 0; i < samplers; ++i) crew.Start(ChildPlan{Role::kSampler, i, "", 1});
        crew.Start(ChildPlan{Role::kTrainer, 4, point, last, stop_there});
        REQUIRE(crew.Supervise());
        CHECK(crew.kills() == 1);
        CHECK(crew.failures() == 0);
        CheckStopped(segment, job);
      }
    }
  }
}

#endif

}  // namespace gnnd::test
