#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "device_work.h"
#include "job_harness.h"
#include "process_crew.h"

// What a device that keeps a master copy is told suffices: it copies what is new and nothing else,
// and the model is the straight line's.

namespace gnnd::test {
namespace {

// A Trainer whose counts are seen by the test.
void AddDeviceTrainer(ThreadCrew& crew, uint32_t device, DeviceTrainWork* work) {
  crew.AddTrainerOf(Role::kTrainer, device, *work);
}

void CheckOutcome(const Segment& segment, const FakeJob& job, ThreadCrew& crew) {
  REQUIRE(crew.Finish());
  CHECK(crew.FirstError().message() == "");
  CHECK(EveryBatchOnce(segment));
  CHECK(OutcomeOf(segment) == Expected(job));
}

}  // namespace

TEST_CASE("one Trainer copies parameters to its device once in a job, and gradients never") {
  for (const uint32_t group : {1U, 3U}) {
    FakeJob job;
    job.group = group;
    Segment segment = MakeSegment(job);
    ThreadCrew crew(segment);
    DeviceTrainWork work(&crew.scratch());
    work.batches_per_epoch = job.batches;
    crew.AddSampler(0);
    AddDeviceTrainer(crew, 1, &work);
    CheckOutcome(segment, job, crew);
    CHECK(work.copies.parameters == 1);
    CHECK(work.copies.optimizers == 1);
    CHECK(work.copies.gradients == 0);
  }
}

TEST_CASE("what is predicted is copied once a group, the version that it is made from not at all") {
  FakeJob job;
  job.group = 2;
  job.staleness = 2;
  job.compensation = StalenessCompensation::kPredict;
  Segment segment = MakeSegment(job);
  ThreadCrew crew(segment);
  DeviceTrainWork work(&crew.scratch());
  work.batches_per_epoch = job.batches;
  crew.AddSampler(0);
  AddDeviceTrainer(crew, 1, &work);
  CheckOutcome(segment, job, crew);
  // 4 groups an epoch: lags of 0, 1, 2 and 2, but for version 0, which has nothing to predict from.
  CHECK(work.copies.parameters == 1 + 1 + 2 * 3);
  CHECK(work.copies.gradients == 0);
}

TEST_CASE("of two Trainers each copies what the other made") {
  FakeJob job;
  job.staleness = 1;
  job.group = 2;
  job.batches = 12;
  Segment segment = MakeSegment(job);
  ThreadCrew crew(segment);
  DeviceTrainWork first(&crew.scratch());
  DeviceTrainWork second(&crew.scratch());
  first.batches_per_epoch = second.batches_per_epoch = job.batches;
  crew.AddSampler(0);
  AddDeviceTrainer(crew, 1, &first);
  AddDeviceTrainer(crew, 2, &second);
  CheckOutcome(segment, job, crew);
  const auto versions = static_cast<int>(segment.Version());
  // Each version but the first was made by one of them, who needs no copy of it.
  CHECK(first.copies.parameters + second.copies.parameters <= versions + 2);
  const auto of = [&](size_t index, Counter counter) {
    return segment.executor(crew.id(index).row).counters[static_cast<uint32_t>(counter)].load();
  };
  CHECK(of(1, Counter::kBatchesTrained) + of(2, Counter::kBatchesTrained) == 36);
}

#ifndef __SANITIZE_THREAD__

TEST_CASE("a device that dies with a step that nobody committed leaves the version before it") {
  const NoDeadlines none;
  for (const char* point : {"apply.after_write_before_cas", "apply.after_cas", "train.after"}) {
    for (const uint32_t staleness : {0U, 2U}) {
      INFO(point, " S=", staleness);
      FakeJob job;
      job.group = 2;
      job.staleness = staleness;
      Segment segment = MakeSegment(job);
      ProcessCrew crew(segment);
      crew.on_device = true;
      crew.Start(ChildPlan{Role::kSampler, 0, "", 1});
      // One of the two comes to its third step, whichever is ahead.
      crew.Start(ChildPlan{Role::kTrainer, 1, point, 3});
      crew.Start(ChildPlan{Role::kTrainer, 2, point, 3});
      REQUIRE(crew.Supervise());
      CHECK(crew.kills() >= 1);
      CHECK(crew.failures() == 0);
      CHECK(EveryBatchOnce(segment));
      CHECK(OutcomeOf(segment) == Expected(job));
    }
  }
}

#endif

}  // namespace gnnd::test
