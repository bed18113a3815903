// Not under ThreadSanitizer, which slows down what some of these wait for.
#ifndef __SANITIZE_THREAD__

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/failpoint.h"
#include "core/executor/committer.h"
#include "core/executor/executor.h"
#include "core/ledger/news.h"
#include "job_harness.h"

// What control costs: ledger words looked at per batch, and who is woken by what. Each rule of
// news.h is dropped once, with nobody who looks again on his own: then the job stands still.

namespace gnnd::test {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience{400};
constexpr milliseconds kLong{20000};

class Broken {
 public:
  explicit Broken(const char* rule) { failpoint::Break(rule); }
  ~Broken() { failpoint::Break(""); }
};

// Whether the crew comes to the end of the job, and to the right one.
bool Finishes(Segment& segment, const FakeJob& job, ThreadCrew& crew, const char* rule) {
  return crew.Finish(*rule == 0 ? kLong : kPatience) && EveryBatchOnce(segment) &&
         OutcomeOf(segment) == Expected(job);
}

bool Waits(const Segment& segment, ExecutorId id, Activity activity) {
  return Eventually([&] {
    const SegmentSnapshot now = segment.Snapshot();
    return id.row < now.executors.size() &&
           now.executors[id.row].activity == static_cast<uint32_t>(activity);
  });
}

// Threads asleep on an event for the news of one kind.
class Sleepers {
 public:
  Sleepers(EventWord& event, uint32_t news, int count) : event_(event), asleep_(count) {
    const uint32_t seen = event.Load();
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, seen, news] {
        event_.Wait(seen, 60 * kNsPerSecond, news);
        --asleep_;
      });
    }
    // In the kernel, not merely on the way there.
    std::this_thread::sleep_for(milliseconds(100));
  }
  ~Sleepers() {
    event_.Notify();
    for (std::thread& thread : threads_) thread.join();
  }
  // How many still sleep, once that has settled.
  int left() {
    std::this_thread::sleep_for(milliseconds(100));
    return asleep_;
  }

 private:
  EventWord& event_;
  std::atomic<int> asleep_;
  std::vector<std::thread> threads_;
};

}  // namespace

TEST_CASE("a batch costs the same number of looks at the ledger with ten slots or ten thousand") {
  uint64_t most[2] = {0, 0};
  uint64_t sums[2] = {0, 0};
  for (const int large : {0, 1}) {
    FakeJob job;
    job.num_slots = large != 0 ? 10'000 : 10;
    job.batches = 10'000;
    job.epochs = 1;
    job.queue_max_bytes = uint64_t{1} << 30;
    Segment segment = MakeSegment(job);
    Batches samples(segment, *segment.RegisterExecutor(Role::kSampler, 0));
    Batches other(segment, *segment.RegisterExecutor(Role::kSampler, 1));
    Batches trains(segment, *segment.RegisterExecutor(Role::kTrainer, 2));
    // The queue is as full as it can be; then batches go through it one by one.
    const uint64_t ahead = large != 0 ? 9'000 : 9;
    for (uint64_t i = 0; i < ahead; ++i) {
      REQUIRE((i % 2 == 0 ? samples : other).Claim() == i);
      REQUIRE((i % 2 == 0 ? samples : other).Publish(i, 100).ok());
    }
    for (uint64_t i = 0; i < 500; ++i) {
      Batches& sampler = i % 2 == 0 ? samples : other;
      const uint64_t before = failpoint::Visits();
      const std::optional<uint64_t> batch = sampler.Claim();
      REQUIRE(batch == ahead + i);
      REQUIRE(sampler.Publish(*batch, 100).ok());
      REQUIRE(trains.Take(Batches::Which::kAny) == i);
      CHECK(trains.Depth(2) >= 2);
      REQUIRE(trains.MarkTrained(i).ok());
      REQUIRE(trains.HeadGroupTrained(i));
      segment.header().version.value.fetch_add(1);
      trains.AnnounceStep(i + 1);
      const uint64_t visits = failpoint::Visits() - before;
      sums[large] += visits;
      most[large] = std::max(most[large], visits);
    }
  }
  MESSAGE("looks per batch: ", sums[0] / 500, " with 10 slots, ", sums[1] / 500, " with 10,000");
  // Few, but for the first time that each Sampler looks at what the other has done.
  CHECK(sums[0] <= 500 * 20);
  CHECK(sums[1] <= 500 * 20 + 2 * 9'000);
  CHECK(most[0] <= 40);
}

TEST_CASE("a claim wakes the next Sampler where another batch can be claimed") {
  FakeJob job;
  job.batches = 40;
  job.num_slots = 2;
  for (const char* rule : {"", "claim-wakes-next"}) {
    Segment segment = MakeSegment(job);
    Batches samples(segment, *segment.RegisterExecutor(Role::kSampler, 0));
    Sleepers samplers(segment.queue().sampler_event.word, kNewsBatch, 3);
    failpoint::Break(rule);
    REQUIRE(samples.Claim() == 0);
    failpoint::Break("");
    CHECK(samplers.left() == (std::string(rule).empty() ? 2 : 3));
    // Nothing is left for anybody after this one.
    const int before = samplers.left();
    REQUIRE(samples.Claim() == 1);
    CHECK(samplers.left() == before);
  }
}

TEST_CASE("one batch wakes one Trainer, one step as many Samplers as it frees slots") {
  FakeJob job;
  job.batches = 40;
  job.group = 2;
  job.num_slots = 4;
  Segment segment = MakeSegment(job);
  Batches samples(segment, *segment.RegisterExecutor(Role::kSampler, 0));
  Batches trains(segment, *segment.RegisterExecutor(Role::kTrainer, 1));
  for (uint64_t b = 0; b < 4; ++b) REQUIRE(samples.Claim() == b);
  {
    Sleepers trainers(segment.queue().trainer_event.word, kNewsBatch, 5);
    REQUIRE(samples.Publish(1, 10).ok());
    CHECK(trainers.left() == 4);
    REQUIRE(samples.Publish(0, 10).ok());
    CHECK(trainers.left() == 3);
  }
  for (const uint64_t b : {0, 1}) {
    REQUIRE(trains.Take(Batches::Which::kAny) == b);
    REQUIRE(trains.MarkTrained(b).ok());
  }
  {
    Sleepers samplers(segment.queue().sampler_event.word, kNewsBatch, 5);
    Sleepers due(segment.queue().trainer_event.word, NewsOfGroup(1), 2);
    Sleepers later(segment.queue().trainer_event.word, NewsOfGroup(2), 4);
    segment.header().version.value.fetch_add(1);
    trains.AnnounceStep(1);
    CHECK(samplers.left() == 3);
    CHECK(due.left() == 0);
    CHECK(later.left() == 4);
    // Whoever claims while another one could wakes that one, and not for the last batch.
    REQUIRE(samples.Claim() == uint64_t{4});
    CHECK(samplers.left() == 2);
    REQUIRE(samples.Claim() == uint64_t{5});
    CHECK(samplers.left() == 2);
  }
}

TEST_CASE("a batch wakes only those standbys whose turn it is") {
  FakeJob job;
  job.num_slots = 4;
  Segment segment = MakeSegment(job);
  Batches samples(segment, *segment.RegisterExecutor(Role::kSampler, 0));
  Batches trains(segment, *segment.RegisterExecutor(Role::kTrainer, 1));
  for (uint64_t b = 0; b < 2; ++b) REQUIRE(samples.Claim() == b);
  EventWord& event = segment.queue().standby_event.word;
  const auto check = [&](auto happens) {
    Sleepers mine(event, kAllNews, 2);
    // Their devices are their Samplers': they wait for that to change.
    Sleepers theirs(event, kNewsRare, 5);
    happens();
    CHECK(mine.left() == 0);
    CHECK(theirs.left() == 5);
    segment.WakeAll();
    CHECK(theirs.left() == 0);
  };
  check([&] { REQUIRE(samples.Publish(0, 10).ok()); });
  REQUIRE(trains.Take(Batches::Which::kAny) == uint64_t{0});
  REQUIRE(trains.MarkTrained(0).ok());
  check([&] {
    segment.header().version.value.fetch_add(1);
    trains.AnnounceStep(1);
  });
}

TEST_CASE("a step wakes Samplers, whose slots it frees") {
  for (const char* rule : {"", "step-wakes-samplers"}) {
    const Broken broken(rule);
    const NoDeadlines none;
    FakeJob job;
    job.num_slots = 1;
    Segment segment = MakeSegment(job);
    ThreadCrew crew(segment);
    crew.AddSampler(0);
    REQUIRE(Waits(segment, crew.id(0), Activity::kWaitEnqueue));
    crew.AddTrainer(Role::kTrainer, 1);
    CHECK(Finishes(segment, job, crew, rule) == (*rule == 0));
  }
}

TEST_CASE("a step wakes those who hold what is due now") {
  for (const char* rule : {"", "step-wakes-holders"}) {
    const Broken broken(rule);
    const NoDeadlines none;
    FakeJob job;
    job.epochs = 1;
    job.num_slots = 4;
    Segment segment = MakeSegment(job);
    ThreadCrew crew(segment);
    crew.AddSampler(0);
    for (const uint32_t device : {1U, 2U}) {
      crew.AddTrainer(Role::kTrainer, device, [&, device](FakeTrainWork& work) {
        work.before_gradient = [&, device](uint32_t, uint32_t batch) {
          // The other one holds a batch and sleeps.
          if (batch == 0) {
            Eventually([&] {
              return CountIn(segment, BatchState::kTaken) == 2 &&
                     segment.Snapshot().executors[crew.id(device == 1 ? 2 : 1).row].activity ==
                         static_cast<uint32_t>(Activity::kWaitDue);
            });
          }
        };
      });
    }
    CHECK(Finishes(segment, job, crew, rule) == (*rule == 0));
  }
}

TEST_CASE("a due batch that is published while all Trainers hold later ones wakes them") {
  for (const char* rule : {"", "ready-wakes-holders"}) {
    const Broken broken(rule);
    const NoDeadlines none;
    const FakeJob job;
    Segment segment = MakeSegment(job);
    ThreadCrew crew(segment);
    // Batch 0 is published only once the Trainer sleeps with another one in its hands.
    for (const uint32_t device : {0U, 1U}) {
      crew.AddSampler(device, [&](uint32_t epoch, uint32_t batch) {
        if (epoch == 0 && batch == 0) {
          Eventually([&] {
            const SegmentSnapshot now = segment.Snapshot();
            return now.executors.size() == 3 &&
                   now.executors[2].activity == static_cast<uint32_t>(Activity::kWaitDue);
          });
        }
      });
    }
    crew.AddTrainer(Role::kTrainer, 2);
    CHECK(Finishes(segment, job, crew, rule) == (*rule == 0));
  }
}

TEST_CASE("a batch that a step makes due while all Trainers hold later ones wakes them") {
  for (const char* rule : {"", "step-wakes-for-ready"}) {
    const Broken broken(rule);
    const NoDeadlines none;
    FakeJob job;
    job.num_slots = 3;
    Segment segment = MakeSegment(job);
    ThreadCrew crew(segment);
    crew.AddSampler(0);
    // Another Trainer, which commits the first step and then does nothing more.
    const ExecutorId id = *segment.RegisterExecutor(Role::kTrainer, 2);
    Executor self(segment, id);
    FakeTrainWork work;
    Committer committer(self, work);
    REQUIRE(committer.EnsureParameters().ok());
    REQUIRE(Eventually([&] { return CountIn(segment, BatchState::kReady) == 3; }));
    REQUIRE(self.batches().Take(Batches::Which::kAny) == uint64_t{0});
    REQUIRE(self.batches().Take(Batches::Which::kAny) == uint64_t{1});
    crew.AddTrainer(Role::kTrainer, 1);
    REQUIRE(Waits(segment, crew.id(1), Activity::kWaitDue));
    REQUIRE(self.batches().GiveBack(1).ok());
    const Result<Sample> sample = OpenRecord(segment.slot(0));
    REQUIRE(sample.ok());
    ExtractReport extracted;
    BatchReport report;
    REQUIRE(work.Extract(*sample, 0, &extracted).ok());
    REQUIRE(
        work.ComputeGradient(*sample, 0, committer.ParametersFor(0), segment.gradient(0), &report)
            .ok());
    segment.hand_in(0) = HandIn{0, 2, id.incarnation, 0, 0, report.sums};
    REQUIRE(self.batches().MarkTrained(0).ok());
    // Asleep again, should the batch given back have woken it.
    REQUIRE(Waits(segment, crew.id(1), Activity::kWaitDue));
    std::this_thread::sleep_for(milliseconds(50));
    const Result<bool> applied = committer.TryApply(0);
    REQUIRE(applied.ok());
    REQUIRE(*applied);
    CHECK(Finishes(segment, job, crew, rule) == (*rule == 0));
  }
}

}  // namespace gnnd::test

#endif
