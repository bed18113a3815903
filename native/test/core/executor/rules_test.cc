// Not under ThreadSanitizer, which rightly reports the races that the dropped rules make.
#ifndef __SANITIZE_THREAD__

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "core/ledger/batches.h"
#include "core/ledger/turn.h"
#include "job_harness.h"

// Each rule of the turn and the queue, kept and dropped: a situation that only the rule saves. With
// the rule the job ends as it must; without it the test sees the deadlock, the lost batch or the
// torn parameters.

namespace gnnd::test {
namespace {

using std::chrono::milliseconds;

// Long enough that a living job makes progress, short enough to wait for in vain.
constexpr milliseconds kPatience{400};
constexpr milliseconds kLong{20000};

class Broken {
 public:
  explicit Broken(const char* rule) { failpoint::Break(rule); }
  ~Broken() { failpoint::Break(""); }
};

uint64_t CounterOf(const Segment& segment, ExecutorId id, Counter counter) {
  return segment.executor(id.row).counters[static_cast<uint32_t>(counter)].load();
}

// A Sampler that claimed batch 0 and died. The daemon has not yet noticed.
ExecutorId DeadOwnerOfBatchZero(Segment& segment) {
  const Result<ExecutorId> id = segment.RegisterExecutor(Role::kSampler, 5);
  GNND_CHECK(id.ok());
  GNND_CHECK(Batches(segment, *id).Claim() == uint64_t{0});
  return *id;
}

struct Variant {
  const char* rule;  // dropped; "" = none
  bool prefetch;
};

// A rule kept and dropped, with Trainers that extract ahead and such that do not.
std::array<Variant, 4> KeptAndDropped(const char* rule) {
  return {{{"", false}, {"", true}, {rule, false}, {rule, true}}};
}

struct Verdict {
  bool finished = false;
  bool right = false;  // the outcome is that of the straight line, every batch once, nothing torn
  Status error;
};

Verdict Judge(Segment& segment, const FakeJob& job, ThreadCrew& crew, milliseconds patience) {
  Verdict verdict;
  verdict.finished = crew.Finish(patience);
  verdict.error = crew.FirstError();
  verdict.right = verdict.finished && segment.Complete() && EveryBatchOnce(segment) &&
                  OutcomeOf(segment) == Expected(job) && crew.torn() == 0;
  return verdict;
}

}  // namespace

TEST_CASE("a slot is claimed again only when its last batch is committed") {
  for (const auto& [rule, prefetch] : KeptAndDropped("slot-window")) {
    const Broken broken(rule);
    FakeJob job;
    job.batches = 9;
    job.num_slots = 2;
    Segment segment = MakeSegment(job);
    ThreadCrew crew(segment);
    crew.prefetch = prefetch;
    crew.AddSampler(0);
    crew.AddTrainer(Role::kTrainer, 1, [&](FakeTrainWork& work) {
      work.before_gradient = [&](uint32_t epoch, uint32_t batch) {
        if (epoch > 0 || batch > 0) return;
        Eventually([&] { return CounterOf(segment, crew.id(0), Counter::kBatchesSampled) > 2; },
                   kPatience);
      };
    });
    const Verdict verdict = Judge(segment, job, crew, kLong);
    CHECK(verdict.right == (*rule == 0));
    if (*rule != 0 && !verdict.error.ok()) CHECK(verdict.error.code() == Code::kShmCorrupted);
  }
}

TEST_CASE("a queue with fewer slots than a group has batches is refused, because it deadlocks") {
  FakeJob job;
  job.group = 3;
  job.num_slots = 2;
  CHECK(ValidateSpec(job.Spec()).code() == Code::kInvalidArgument);
  const Broken broken("slots-hold-a-group");
  Segment segment = MakeSegment(job);
  ThreadCrew crew(segment);
  crew.AddSampler(0);
  crew.AddTrainer(Role::kTrainer, 1);
  CHECK_FALSE(crew.Finish(kPatience));
}

TEST_CASE("the owner in the ledger is an incarnation, so a late reclaim spares the successor") {
  for (const char* rule : {"", "owner-is-incarnation"}) {
    const Broken broken(rule);
    Segment segment = MakeSegment(FakeJob{});
    const Result<ExecutorId> dead = segment.RegisterExecutor(Role::kSampler, 0);
    const Result<ExecutorId> successor = segment.RegisterExecutor(Role::kSampler, 0);
    REQUIRE(dead.ok());
    REQUIRE(successor.ok());
    Batches batches(segment, *successor);
    const std::optional<uint64_t> batch = batches.Claim();
    REQUIRE(batch.has_value());
    REQUIRE(segment.Reclaim(dead->incarnation).ok());
    CHECK(batches.Publish(*batch, 100).ok() == (*rule == 0));
  }
}

TEST_CASE("a Sampler waits for room before it claims, and the head group needs none") {
  for (const char* rule : {"", "room-before-claim", "head-group-exempt"}) {
    INFO(rule);
    const Broken broken(rule);
    FakeJob job;
    job.queue_max_bytes = 1;
    Segment segment = MakeSegment(job);
    const ExecutorId dead = DeadOwnerOfBatchZero(segment);
    ThreadCrew crew(segment);
    crew.AddSampler(0);
    // It samples batch 1; then the budget is spent, and batch 0 comes back.
    REQUIRE(Eventually([&] {
      return CountIn(segment, BatchState::kReady) == 1 &&
             segment.Snapshot().executors[crew.id(0).row].activity ==
                 static_cast<uint32_t>(Activity::kWaitEnqueue);
    }));
    CHECK(segment.Reclaim(dead.incarnation)->claimed == 1);
    crew.AddTrainer(Role::kTrainer, 1);
    const Verdict verdict = Judge(segment, job, crew, *rule == 0 ? kLong : kPatience);
    CHECK(verdict.right == (*rule == 0));
    CHECK(verdict.finished == (*rule == 0));
  }
}

TEST_CASE("a gradient is computed on exactly the version that its group's delay says") {
  for (const auto& [rule, prefetch] : KeptAndDropped("due-version")) {
    const Broken broken(rule);
    const FakeJob job;
    Segment segment = MakeSegment(job);
    ThreadCrew crew(segment);
    crew.prefetch = prefetch;
    crew.AddSampler(0);
    std::atomic<int> gradients{0};
    for (const uint32_t device : {1U, 2U}) {
      crew.AddTrainer(Role::kTrainer, device, [&](FakeTrainWork& work) {
        work.before_gradient = [&](uint32_t epoch, uint32_t batch) {
          // Batch 0 lets the other Trainer go first, if that will.
          if (epoch == 0 && batch == 0) Eventually([&] { return gradients > 0; }, kPatience);
        };
        work.during_gradient = [&](uint32_t, uint32_t) { ++gradients; };
      });
    }
    const Verdict verdict = Judge(segment, job, crew, kLong);
    CHECK(verdict.right == (*rule == 0));
  }
}

TEST_CASE("the state of the optimizer that a prediction reads is its version's") {
  for (const auto& [rule, prefetch] : KeptAndDropped("optimizer-by-version")) {
    const Broken broken(rule);
    FakeJob job;
    job.staleness = 2;
    job.compensation = StalenessCompensation::kPredict;
    Segment segment = MakeSegment(job);
    ThreadCrew crew(segment);
    crew.prefetch = prefetch;
    crew.AddSampler(0);
    crew.AddTrainer(Role::kTrainer, 1);
    const Verdict verdict = Judge(segment, job, crew, kLong);
    CHECK(verdict.right == (*rule == 0));
  }
}

TEST_CASE("no batch of the next epoch is computed while an evaluation runs") {
  for (const auto& [rule, prefetch] : KeptAndDropped("evaluation-barrier")) {
    const Broken broken(rule);
    const FakeJob job;
    Segment segment = MakeSegment(job);
    ThreadCrew crew(segment);
    crew.prefetch = prefetch;
    crew.AddSampler(0);
    // The first one sees no evaluation; before it takes a batch the epoch ends, so that it takes
    // one of the next.
    std::atomic<bool> looks{false};
    failpoint::Arm("look.before_take", 1, [&] {
      looks = true;
      Eventually([&] { return segment.OpenRun() && CountIn(segment, BatchState::kReady) > 0; });
    });
    const auto slowly = [&](FakeTrainWork& work) {
      work.during_evaluation = [&](const EvalTask& task, const Alive&) {
        if (task.phase > 0 || task.chunk > 0) return;
        // Long enough for commits to come round to the buffer that is being read.
        const uint64_t overtaken = segment.Version() + job.staleness + 2;
        Eventually([&] { return segment.Version() >= overtaken; }, kPatience / 4);
      };
    };
    crew.AddTrainer(Role::kTrainer, 1, slowly);
    REQUIRE(Eventually([&] { return looks.load(); }));
    crew.AddTrainer(Role::kTrainer, 2, slowly);
    const Verdict verdict = Judge(segment, job, crew, *rule == 0 ? kLong : kPatience);
    CHECK(verdict.right == (*rule == 0));
    CHECK((crew.torn() > 0) == (*rule != 0));
  }
  failpoint::Arm("", 0);
}

TEST_CASE("a Trainer that waits gives its batch back when a lower one is ready") {
  for (const auto& [rule, prefetch] : KeptAndDropped("give-back-for-lower")) {
    const Broken broken(rule);
    const FakeJob job;
    Segment segment = MakeSegment(job);
    ThreadCrew crew(segment);
    crew.prefetch = prefetch;
    // Batch 0 is published only once the Trainer holds another one.
    for (const uint32_t device : {0U, 1U}) {
      crew.AddSampler(device, [&](uint32_t epoch, uint32_t batch) {
        if (epoch > 0 || batch > 0) return;
        Eventually([&] { return CountIn(segment, BatchState::kTaken) > 0; });
      });
    }
    crew.AddTrainer(Role::kTrainer, 2);
    const Verdict verdict = Judge(segment, job, crew, *rule == 0 ? kLong : kPatience);
    CHECK(verdict.right == (*rule == 0));
    CHECK(verdict.finished == (*rule == 0));
    if (*rule == 0) CHECK(CounterOf(segment, crew.id(2), Counter::kBatchesGivenBack) > 0);
  }
}

TEST_CASE("a batch is given back only when its extraction reads the slot no more") {
  for (const char* rule : {"", "give-back-after-reads"}) {
    const Broken broken(rule);
    FakeJob job;
    job.batches = 9;
    job.num_slots = 2;
    Segment segment = MakeSegment(job);
    ThreadCrew crew(segment);
    crew.prefetch = true;
    crew.AddSampler(0);
    REQUIRE(Eventually([&] { return CountIn(segment, BatchState::kReady) == 2; }));
    std::atomic<bool> reading{false};
    // It is told to stop while it extracts batch 1 and computes batch 0.
    crew.AddTrainer(Role::kTrainer, 1, [&](FakeTrainWork& work) {
      work.during_extract = [&](uint32_t epoch, uint32_t batch) {
        if (epoch > 0 || batch != 1) return;
        segment.SetExecutorCommand(crew.id(1).row, Command::kStop);
        reading = true;
        // Long enough for another Trainer to bring other batches into the slot.
        Eventually([&] { return segment.Version() >= 4; }, kPatience);
      };
      work.during_gradient = [&](uint32_t, uint32_t) {
        Eventually([&] { return reading.load(); });
      };
    });
    REQUIRE(Eventually([&] { return reading.load(); }));
    crew.AddTrainer(Role::kTrainer, 2);
    const Verdict verdict = Judge(segment, job, crew, kLong);
    CHECK(verdict.finished);
    CHECK(verdict.right == (*rule == 0));
    CHECK((crew.torn() > 0) == (*rule != 0));
    CHECK(CounterOf(segment, crew.id(1), Counter::kBatchesGivenBack) == 1);
  }
}

TEST_CASE("a Sampler never computes while the turn is the standby's") {
  for (const char* rule : {"", "turn-holder-changes"}) {
    const Broken broken(rule);
    FakeJob job;
    job.staleness = 2;
    job.num_slots = 3;
    Segment segment = MakeSegment(job);
    segment.SetStandby(StandbyPolicy::kAlways, true);
    const ExecutorId dead = DeadOwnerOfBatchZero(segment);
    ThreadCrew crew(segment);
    crew.AddSampler(0);
    std::atomic<int> gradients{0};
    crew.AddTrainer(Role::kStandby, 0, [&](FakeTrainWork& work) {
      work.during_gradient = [&](uint32_t, uint32_t) {
        if (gradients++ > 0) return;
        // In the midst of a batch, with a Sampler that has just got work to do.
        CHECK(segment.Reclaim(dead.incarnation)->claimed == 1);
        const uint64_t before = CounterOf(segment, crew.id(0), Counter::kBatchesSampled);
        Eventually(
            [&] { return CounterOf(segment, crew.id(0), Counter::kBatchesSampled) > before; },
            kPatience / 4);
      };
    });
    const Verdict verdict = Judge(segment, job, crew, kLong);
    CHECK(verdict.right);
    CHECK((crew.collisions() > 0) == (*rule != 0));
  }
}

TEST_CASE("when a standby is reaped the daemon gives its turn to the Sampler") {
  for (const char* rule : {"", "turn-repair"}) {
    const Broken broken(rule);
    Segment segment = MakeSegment(FakeJob{});
    const Result<ExecutorId> standby = segment.RegisterExecutor(Role::kStandby, 0);
    REQUIRE(standby.ok());
    Turn turn(segment, 0);
    turn.StandbyEnters();
    REQUIRE(turn.SamplerHandsOver());
    REQUIRE(segment.Reclaim(standby->incarnation).ok());
    CHECK(turn.SamplerHolds() == (*rule == 0));
    CHECK(turn.SamplerHandsOver() == false);  // there is nobody to hand over to
  }
}

TEST_CASE(
    "a standby that waits gives back its batch and the turn when a lower batch is claimable") {
  for (const char* rule : {"", "standby-gives-back-turn"}) {
    const Broken broken(rule);
    FakeJob job;
    job.num_slots = 2;
    Segment segment = MakeSegment(job);
    segment.SetStandby(StandbyPolicy::kAlways, true);
    const ExecutorId dead = DeadOwnerOfBatchZero(segment);
    ThreadCrew crew(segment);
    crew.AddSampler(0);
    crew.AddTrainer(Role::kStandby, 0);
    // The Sampler made batch 1 and lent the device; the standby waits with batch 1 in its hand.
    REQUIRE(Eventually([&] {
      return segment.Snapshot().executors[crew.id(1).row].activity ==
             static_cast<uint32_t>(Activity::kWaitDue);
    }));
    CHECK(segment.Reclaim(dead.incarnation)->claimed == 1);
    const Verdict verdict = Judge(segment, job, crew, *rule == 0 ? kLong : kPatience);
    CHECK(verdict.right == (*rule == 0));
    CHECK(verdict.finished == (*rule == 0));
  }
}

TEST_CASE("a Trainer that waits with a batch gives it back for an evaluation") {
  for (const auto& [rule, prefetch] : KeptAndDropped("give-back-for-evaluation")) {
    const Broken broken(rule);
    FakeJob job;
    job.epochs = 2;
    Segment segment = MakeSegment(job);
    ThreadCrew crew(segment);
    crew.prefetch = prefetch;
    crew.AddSampler(0);
    // The first one sees no evaluation; before it takes a batch the epoch ends, so that it takes
    // one of the next.
    std::atomic<bool> looks{false};
    failpoint::Arm("look.before_take", 1, [&] {
      looks = true;
      Eventually([&] { return segment.OpenRun() && CountIn(segment, BatchState::kReady) > 0; });
    });
    crew.AddTrainer(Role::kTrainer, 1);
    REQUIRE(Eventually([&] { return looks.load(); }));
    // The second one leaves in the midst of the evaluation.
    crew.AddTrainer(Role::kTrainer, 2, [&](FakeTrainWork& work) {
      work.during_evaluation = [&](const EvalTask&, const Alive&) {
        Eventually([&] { return CountIn(segment, BatchState::kTaken) > 0; }, kPatience / 4);
        segment.SetExecutorCommand(crew.id(2).row, Command::kStop);
      };
    });
    const Verdict verdict = Judge(segment, job, crew, *rule == 0 ? kLong : kPatience);
    CHECK(verdict.right == (*rule == 0));
    CHECK(verdict.finished == (*rule == 0));
    if (*rule == 0) CHECK(CounterOf(segment, crew.id(1), Counter::kBatchesGivenBack) > 0);
  }
  failpoint::Arm("", 0);
}

TEST_CASE("a phase of an evaluation opens when all chunks of the one before are done") {
  for (const auto& [rule, prefetch] : KeptAndDropped("phase-after-phase")) {
    const Broken broken(rule);
    const FakeJob job;
    Segment segment = MakeSegment(job);
    ThreadCrew crew(segment);
    crew.prefetch = prefetch;
    crew.AddSampler(0);
    std::atomic<int> late{0};
    for (const uint32_t device : {1U, 2U}) {
      crew.AddTrainer(Role::kTrainer, device, [&](FakeTrainWork& work) {
        work.during_evaluation = [&](const EvalTask& task, const Alive&) {
          if (task.phase > 0) ++late;
          // Chunk 0 lets the other Trainer go on to the next phase, if that will.
          const int before = late;
          if (task.phase == 0 && task.chunk == 0) {
            Eventually([&] { return late > before; }, kPatience / 4);
          }
        };
      });
    }
    const Verdict verdict = Judge(segment, job, crew, kLong);
    CHECK(verdict.right == (*rule == 0));
    CHECK((crew.torn() > 0) == (*rule != 0));
  }
}

TEST_CASE("best parameters that improve twice while they are copied are copied again") {
  FakeJob job;
  job.epochs = 8;
  // A job with three better ones and more after its first epoch.
  const auto improvements = [](const FakeJob& of) {
    std::vector<uint32_t> best;
    for (FakeJob part = of; part.epochs > 0; --part.epochs) {
      const uint32_t epoch = Expected(part).best_epoch;
      if (best.empty() || best.back() != epoch) best.push_back(epoch);
    }
    return best;
  };
  while (improvements(job).size() < 3) ++job.batches;
  const std::vector<uint32_t> best = improvements(job);  // the last first
  const uint32_t third = best[best.size() - 3];
  Segment segment = MakeSegment(job);
  ThreadCrew crew(segment);
  std::vector<float> copied(kFakeFloats);
  std::atomic<bool> copying{false};
  // Until a copy has begun, the evaluation after the next better one waits.
  crew.AddSampler(0);
  crew.AddTrainer(Role::kTrainer, 1, [&](FakeTrainWork& work) {
    work.before_gradient = [&](uint32_t epoch, uint32_t batch) {
      if (epoch == best[best.size() - 2] && batch == 0) {
        Eventually([&] { return copying.load(); });
      }
    };
  });
  REQUIRE(Eventually([&] { return segment.LastEvaluated().has_value(); }));
  failpoint::Arm("best.before_copy", 1, [&] {
    copying = true;
    Eventually([&] { return segment.LastEvaluated() >= uint64_t{third}; });
  });
  const Result<uint32_t> epoch = segment.CopyBestParameters(copied);
  failpoint::Arm("", 0);
  REQUIRE(epoch.ok());
  FakeJob part = job;
  part.epochs = *epoch + 1;
  CHECK(copied == Expected(part).best);
  CHECK(Judge(segment, job, crew, kLong).right);
}

TEST_CASE("until an evaluation is committed, the best parameters are still the former ones") {
  FakeJob job;
  job.epochs = 2;
  job.batches = 1;
  while (Expected(job).best_epoch == 0) ++job.batches;  // a job whose second epoch is better
  Segment segment = MakeSegment(job);
  FakeJob first_epoch = job;
  first_epoch.epochs = 1;
  std::vector<float> copied(kFakeFloats);
  failpoint::Arm("evaluate.before_commit", 2, [&] {
    const Result<uint32_t> epoch = segment.CopyBestParameters(copied);
    CHECK(epoch.ok());
    CHECK(*epoch == 0);
  });
  ThreadCrew crew(segment);
  crew.AddSampler(0);
  crew.AddTrainer(Role::kTrainer, 1);
  CHECK(Judge(segment, job, crew, kLong).right);
  failpoint::Arm("", 0);
  CHECK(copied == Expected(first_epoch).best);
}

}  // namespace gnnd::test

#endif
