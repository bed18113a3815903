#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "job_harness.h"

// Where an executor's time went: what it counts, counted once.

namespace gnnd::test {
namespace {

// What each stage takes at least, in a batch of these tests.
constexpr std::chrono::milliseconds kWork{4};

void Work(uint32_t, uint32_t) { std::this_thread::sleep_for(kWork); }

uint64_t StageNs(const ExecutorSnapshot& executor, Stage stage) {
  return executor.stages[static_cast<uint32_t>(stage)].busy_ns;
}

uint64_t WaitNs(const ExecutorSnapshot& executor, WaitSide side) {
  return executor.waits[static_cast<uint32_t>(side)].wait_ns;
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

}  // namespace

TEST_CASE(
    "stages and waits of an executor add up to its time, and extraction hides behind training") {
  for (const bool prefetch : {false, true}) {
    for (const uint32_t trainers : {1U, 2U}) {
      INFO(trainers, " Trainers, prefetch=", prefetch);
      FakeJob job;
      job.batches = 12;
      job.staleness = trainers - 1;
      Segment segment = MakeSegment(job);
      segment.SetEstimates(StandbyEstimates{1, 1, 1, trainers});
      ThreadCrew crew(segment);
      crew.prefetch = prefetch;
      crew.AddSampler(0, [](uint32_t, uint32_t) {});
      for (uint32_t i = 0; i < trainers; ++i) {
        crew.AddTrainer(Role::kTrainer, 1 + i, [](FakeTrainWork& work) {
          work.during_extract = Work;
          work.during_gradient = Work;
        });
      }
      REQUIRE(crew.Finish());
      for (const ExecutorSnapshot& executor : segment.Snapshot().executors) {
        INFO("row ", executor.id.row);
        const uint64_t accounted_ns = AccountedNs(executor);
        const uint64_t wall_ns = crew.loop_ns(executor.id.row);
        CHECK(accounted_ns <= wall_ns);                // nothing counts twice
        CHECK(accounted_ns >= wall_ns - wall_ns / 4);  // little is missing
        if (executor.role == Role::kSampler) continue;
        const uint64_t ahead = executor.counters[static_cast<uint32_t>(Counter::kBatchesAhead)];
        const uint64_t extract_ns = StageNs(executor, Stage::kExtract);
        const uint64_t waited_ns = WaitNs(executor, WaitSide::kExtract);
        CHECK((ahead > 0) == prefetch);
        CHECK((waited_ns < extract_ns) == prefetch);
      }
      CHECK(OutcomeOf(segment) == Expected(job));
    }
  }
}

}  // namespace gnnd::test
