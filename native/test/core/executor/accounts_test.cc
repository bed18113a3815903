#include <doctest/doctest.h>

#include <cstdint>

#include "job_harness.h"

// Where an executor's time went: what it counts, counted once. Time is made by the test: it passes
// where work is done, and by 1 ns at each look at the clock.

namespace gnnd::test {
namespace {

// What each stage takes in a batch of these tests: more than all looks at the clock together.
constexpr uint64_t kWorkNs = 1'000'000'000;

void Work(uint32_t, uint32_t) { failpoint::PassNs(kWorkNs); }

struct MadeTime {
  MadeTime() { failpoint::MakeTime(true); }
  ~MadeTime() { failpoint::MakeTime(false); }
};

uint64_t StageNs(const ExecutorSnapshot& executor, Stage stage) {
  return executor.stages[static_cast<uint32_t>(stage)].busy_ns;
}

uint64_t CountOf(const ExecutorSnapshot& executor, Counter counter) {
  return executor.counters[static_cast<uint32_t>(counter)];
}

// What one thread did: all stages and all waits, where extraction counts as long as it was waited
// for.
uint64_t AccountedNs(const ExecutorSnapshot& executor) {
  uint64_t sum = 0;
  for (uint32_t stage = 0; stage < kNumStages; ++stage) {
    if (static_cast<Stage>(stage) != Stage::kExtract) sum += executor.stages[stage].busy_ns;
  }
  for (const WaitSnapshot& wait : executor.waits) sum += wait.wait_ns;
  return sum;
}

void CheckAccounts(const FakeJob& job, uint32_t trainers, bool prefetch) {
  const MadeTime made;
  Segment segment = MakeSegment(job);
  segment.SetEstimates(StandbyEstimates{1, 1, 1, trainers});
  ThreadCrew crew(segment);
  crew.prefetch = prefetch;
  crew.AddSampler(0, Work);
  // So that there is a batch to be taken ahead.
  REQUIRE(Eventually([&] { return CountIn(segment, BatchState::kReady) > trainers; }));
  for (uint32_t i = 0; i < trainers; ++i) {
    crew.AddTrainer(Role::kTrainer, 1 + i, [](FakeTrainWork& work) {
      work.during_extract = Work;
      work.during_gradient = Work;
      work.during_evaluation = [](const EvalTask&, const Alive&) { Work(0, 0); };
    });
  }
  REQUIRE(crew.Finish());
  uint64_t trained = 0;
  uint64_t ahead = 0;
  uint64_t extract_ns = 0;
  uint64_t waited_ns = 0;
  for (const ExecutorSnapshot& executor : segment.Snapshot().executors) {
    INFO("row ", executor.id.row);
    const uint64_t accounted_ns = AccountedNs(executor);
    const uint64_t wall_ns = crew.loop_ns(executor.id.row);
    CHECK(accounted_ns <= wall_ns);           // nothing counts twice
    CHECK(wall_ns - accounted_ns < kWorkNs);  // no piece of work is missing
    CHECK(StageNs(executor, Stage::kSample) / kWorkNs ==
          CountOf(executor, Counter::kBatchesSampled));
    CHECK(StageNs(executor, Stage::kTrain) / kWorkNs ==
          CountOf(executor, Counter::kBatchesTrained));
    CHECK(StageNs(executor, Stage::kEvaluate) / kWorkNs == CountOf(executor, Counter::kEvalChunks));
    trained += CountOf(executor, Counter::kBatchesTrained);
    ahead += CountOf(executor, Counter::kBatchesAhead);
    extract_ns += StageNs(executor, Stage::kExtract);
    waited_ns += executor.waits[static_cast<uint32_t>(WaitSide::kExtract)].wait_ns;
  }
  CHECK(trained == job.batches * job.epochs);
  CHECK(extract_ns / kWorkNs == trained);
  CHECK((ahead > 0) == prefetch);
  // What is not taken ahead is waited for; what another thread extracts takes no time of this one.
  CHECK(waited_ns / kWorkNs == (prefetch ? 0 : trained));
  CHECK(OutcomeOf(segment) == Expected(job));
}

}  // namespace

TEST_CASE(
    "stages and waits of an executor add up to its time, and extraction hides behind training") {
  for (const bool prefetch : {false, true}) {
    for (const uint32_t trainers : {1U, 2U}) {
      INFO(trainers, " Trainers, prefetch=", prefetch);
      FakeJob job;
      job.batches = 12;
      job.staleness = trainers - 1;
      CheckAccounts(job, trainers, prefetch);
    }
  }
}

}  // namespace gnnd::test
