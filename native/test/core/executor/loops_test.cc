#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "job_harness.h"

namespace gnnd::test {
namespace {

struct Crew {
  const char* name;
  std::vector<uint32_t> samplers;  // device of each, here and below
  std::vector<uint32_t> trainers;
  std::vector<uint32_t> standbys;
};

const Crew kCrews[] = {
    {"1 Sampler + 1 Trainer", {0}, {1}, {}},
    {"3 Samplers + 1 Trainer", {0, 1, 2}, {3}, {}},
    {"1 Sampler + 3 Trainers", {0}, {1, 2, 3}, {}},
    {"2 Samplers + 3 Trainers, standby ALWAYS", {0, 1}, {2, 3, 4}, {0, 1}},
    {"one device alternating", {0}, {}, {0}},
    {"two devices alternating", {0, 1}, {}, {0, 1}},
};

void RunOnce(const FakeJob& job, const Crew& crew, StandbyPolicy policy, uint32_t depth,
             bool prefetch) {
  INFO(crew.name, ", M=", job.batches, " G=", job.group, " S=", job.staleness,
       " slots=", job.num_slots, " budget=", job.queue_max_bytes, " depth=", depth,
       " prefetch=", prefetch);
  const NoDeadlines none;
  Segment segment = MakeSegment(job);
  segment.SetStandby(policy, true);
  segment.SetEstimates(StandbyEstimates{1000, 1000, 1500, crew.trainers.size()});
  ThreadCrew threads(segment);
  threads.depth = depth;
  threads.prefetch = prefetch;
  for (const uint32_t device : crew.samplers) threads.AddSampler(device);
  for (const uint32_t device : crew.trainers) threads.AddTrainer(Role::kTrainer, device);
  for (const uint32_t device : crew.standbys) threads.AddTrainer(Role::kStandby, device);
  REQUIRE(threads.Finish());
  CHECK(threads.FirstError().message() == "");
  CHECK(threads.AllEnded(LoopEnd::kComplete));
  CHECK(segment.Complete());
  CHECK(EveryBatchOnce(segment));
  CHECK(OutcomeOf(segment) == Expected(job));
  CHECK(threads.collisions() == 0);
  CHECK(threads.torn() == 0);
}

void RunCrew(const FakeJob& job, const Crew& crew, StandbyPolicy policy = StandbyPolicy::kAlways) {
  for (const uint32_t depth : {1U, 2U}) {
    for (const bool prefetch : {false, true}) RunOnce(job, crew, policy, depth, prefetch);
  }
}

}  // namespace

TEST_CASE("one Sampler and one Trainer finish a job with the parameters of the straight line") {
  RunCrew(FakeJob{}, kCrews[0]);
}

TEST_CASE("the final parameters are the same for every crew, staleness, group size and prefetch") {
  for (const uint32_t staleness : {0U, 2U}) {
    for (const uint32_t group : {1U, 3U}) {
      for (const uint64_t batches : {uint64_t{7}, uint64_t{9}, uint64_t{2}}) {
        FakeJob job;
        job.staleness = staleness;
        job.group = group;
        job.batches = batches;
        for (const Crew& crew : kCrews) RunCrew(job, crew);
        if (staleness == 0) continue;
        job.compensation = StalenessCompensation::kPredict;
        for (const Crew& crew : kCrews) RunCrew(job, crew);
      }
    }
  }
}

TEST_CASE("batches of rows need no Sampler, and any number of Trainers makes the same parameters") {
  const Crew crews[] = {{"1 Trainer", {}, {0}, {}},
                        {"2 Trainers", {}, {0, 1}, {}},
                        {"5 Trainers", {}, {0, 1, 2, 3, 4}, {}}};
  for (const uint32_t staleness : {0U, 2U}) {
    for (const uint32_t group : {1U, 3U}) {
      for (const uint64_t batches : {uint64_t{1}, uint64_t{7}, uint64_t{20}}) {
        FakeJob job;
        job.born_ready = true;
        job.staleness = staleness;
        job.group = group;
        job.batches = batches;
        for (const Crew& crew : crews) RunCrew(job, crew, StandbyPolicy::kOff);
      }
    }
  }
}

TEST_CASE("a job on rows stops early where one with Samplers does") {
  FakeJob job;
  job.born_ready = true;
  job.epochs = 8;
  job.early_stop = {1, 0};
  RunCrew(job, {"2 Trainers", {}, {0, 1}, {}}, StandbyPolicy::kOff);
}

TEST_CASE("a Trainer predicts once for all batches of a group, and never without a delay") {
  for (const uint32_t staleness : {0U, 2U}) {
    FakeJob job;
    job.batches = 12;
    job.group = 3;
    job.epochs = 2;
    job.staleness = staleness;
    job.compensation = StalenessCompensation::kPredict;
    Segment segment = MakeSegment(job);
    ThreadCrew crew(segment);
    crew.AddSampler(0);
    crew.AddTrainer(Role::kTrainer, 1);
    REQUIRE(crew.Finish());
    // Three of epoch 0's four groups see version 0, which has no moments; epoch 1's first sees its
    // own.
    CHECK(crew.predictions() == (staleness == 0 ? 0 : 4));
  }
}

TEST_CASE("the smallest possible queue and a budget of one byte change nothing but speed") {
  for (const uint32_t group : {1U, 3U}) {
    for (const uint32_t staleness : {0U, 2U}) {
      FakeJob job;
      job.group = group;
      job.staleness = staleness;
      job.num_slots = group;
      for (const Crew& crew : kCrews) RunCrew(job, crew);
      job.num_slots = 0;
      job.queue_max_bytes = 1;
      for (const Crew& crew : kCrews) RunCrew(job, crew);
    }
  }
}

TEST_CASE("the policy and the estimates of standby Trainers never decide bits") {
  for (const StandbyPolicy policy : {StandbyPolicy::kOff, StandbyPolicy::kAuto}) {
    FakeJob job;
    job.staleness = 2;
    job.batches = 20;
    RunCrew(job, kCrews[3], policy);
  }
  RunCrew(FakeJob{}, kCrews[4], StandbyPolicy::kAuto);
}

TEST_CASE("random jobs with random crews end alike under shaken schedules") {
  const ShakenSchedule shaken;
  const char* given = std::getenv("GNND_SEED");
  const uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  const uint64_t count = given != nullptr ? 1 : 100;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    INFO("GNND_SEED=", seed);
    Draws draw(seed);
    const FakeJob job = RandomJob(draw);
    Crew crew{"random", {}, {}, {}};
    const auto samplers = static_cast<uint32_t>(1 + draw(3));
    const auto trainers = static_cast<uint32_t>(draw(3));
    const uint64_t standbys = trainers == 0 ? samplers : draw(samplers + 1);
    for (uint32_t i = 0; i < samplers; ++i) crew.samplers.push_back(i);
    for (uint32_t i = 0; i < standbys; ++i) crew.standbys.push_back(i);
    for (uint32_t i = 0; i < trainers; ++i) crew.trainers.push_back(samplers + i);
    RunCrew(job, crew, draw(2) == 0 ? StandbyPolicy::kAlways : StandbyPolicy::kAuto);
  }
}

TEST_CASE("a job on more devices than a word has bits counts every one of them") {
  FakeJob job;
  job.devices = 150;
  job.batches = 301;
  job.epochs = 2;
  job.group = 40;
  Segment segment = MakeSegment(job);
  ThreadCrew crew(segment);
  // The last ones first: work is so short that the first few do all of it.
  for (uint32_t i = job.devices; i-- > 0;) {
    if (i % 3 == 0) {
      crew.AddSampler(i);
    } else {
      crew.AddTrainer(Role::kTrainer, i);
    }
  }
  CHECK(crew.Finish());
  CHECK(OutcomeOf(segment) == Expected(job));
  for (uint32_t epoch = 0; epoch < job.epochs; ++epoch) {
    const EpochReport report = segment.ReportEpoch(epoch);
    REQUIRE(report.device_batches.size() == job.devices);
    uint64_t batches = 0;
    uint64_t beyond = 0;
    for (uint32_t i = 0; i < job.devices; ++i) {
      CHECK((i % 3 != 0 || report.device_batches[i] == 0));
      batches += report.device_batches[i];
      if (i >= 64) beyond += report.device_batches[i];
    }
    CHECK(batches == job.batches);
    CHECK(beyond > 0);
  }
}

TEST_CASE("a batch is taken ahead only where every other Trainer would find one, too") {
  for (const uint64_t trainers : {uint64_t{0}, uint64_t{1}, uint64_t{2}}) {
    INFO(trainers, " Trainers");
    FakeJob job;
    job.num_slots = 2;
    Segment segment = MakeSegment(job);
    segment.SetEstimates(StandbyEstimates{1000, 1000, 1500, trainers});
    ThreadCrew crew(segment);
    crew.prefetch = true;
    crew.AddSampler(0);
    // One batch in hand leaves one: enough for the only Trainer, not for one of two.
    REQUIRE(Eventually([&] { return CountIn(segment, BatchState::kReady) == 2; }));
    std::atomic<uint64_t> in_hand{0};
    crew.AddTrainer(Role::kTrainer, 1, [&](FakeTrainWork& work) {
      work.during_gradient = [&](uint32_t epoch, uint32_t batch) {
        if (epoch == 0 && batch == 0) in_hand = CountIn(segment, BatchState::kTaken);
      };
    });
    CHECK(crew.Finish());
    CHECK(in_hand == (trainers == 2 ? 1 : 2));
    const ExecutorSnapshot trainer = segment.Snapshot().executors[crew.id(1).row];
    const uint64_t ahead = trainer.counters[static_cast<uint32_t>(Counter::kBatchesAhead)];
    CHECK((ahead > 0) == (trainers < 2));
    CHECK(OutcomeOf(segment) == Expected(job));
  }
}

TEST_CASE("devices that share sampling and training take ahead until the queue is low") {
  const NoDeadlines none;
  for (const uint32_t devices : {1U, 2U, 3U}) {
    INFO(devices, " devices");
    FakeJob job;
    job.batches = 23;
    job.devices = devices;
    job.num_slots = 12;
    job.low_water = 3;
    Segment segment = MakeSegment(job);
    segment.SetStandby(StandbyPolicy::kAuto, true);
    segment.SetEstimates(StandbyEstimates{1000, 1000, 1500, 0});
    ThreadCrew crew(segment);
    crew.prefetch = true;
    for (uint32_t i = 0; i < devices; ++i) {
      crew.AddTrainer(Role::kStandby, i);
      crew.AddSampler(i);
    }
    CHECK(crew.Finish());
    uint64_t ahead = 0;
    for (const ExecutorSnapshot& executor : segment.Snapshot().executors) {
      ahead += executor.counters[static_cast<uint32_t>(Counter::kBatchesAhead)];
    }
    CHECK(ahead > 0);
    CHECK(crew.collisions() == 0);
    CHECK(OutcomeOf(segment) == Expected(job));
  }
}

TEST_CASE("a standby takes nothing ahead while its Sampler may want the device back") {
  const NoDeadlines none;
  for (const bool gone : {false, true}) {
    const FakeJob job;
    Segment segment = MakeSegment(job);
    segment.SetStandby(StandbyPolicy::kAlways, true);
    // A standby beside a Trainer; without any, it would take until the queue is low.
    segment.SetEstimates(StandbyEstimates{1000, 1000, 1500, 1});
    ThreadCrew crew(segment);
    crew.prefetch = true;
    crew.AddTrainer(Role::kStandby, 0);
    crew.AddSampler(gone ? 1 : 0, [&](uint32_t, uint32_t batch) {
      // Marks a Sampler on another device as gone once there is a batch to take ahead.
      if (gone && batch + 1 == job.batches) segment.MarkSamplerGone(0);
    });
    CHECK(crew.Finish());
    const ExecutorSnapshot standby = segment.Snapshot().executors[crew.id(0).row];
    const uint64_t ahead = standby.counters[static_cast<uint32_t>(Counter::kBatchesAhead)];
    CHECK((ahead > 0) == gone);
    CHECK(crew.collisions() == 0);
    CHECK(OutcomeOf(segment) == Expected(job));
  }
}

}  // namespace gnnd::test
