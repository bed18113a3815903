#include "core/ledger/batches.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace gnnd {
namespace {

struct Fixture {
  explicit Fixture(uint32_t group = 1, uint32_t staleness = 0, uint64_t slots = 3,
                   uint64_t max_bytes = 1'000'000)
      : segment(Make(group, staleness, slots, max_bytes)),
        sampler(segment, *segment.RegisterExecutor(Role::kSampler, 0)),
        other(segment, *segment.RegisterExecutor(Role::kSampler, 1)),
        trainer(segment, *segment.RegisterExecutor(Role::kTrainer, 2)) {}

  static Segment Make(uint32_t group, uint32_t staleness, uint64_t slots, uint64_t max_bytes) {
    SegmentSpec spec;
    spec.batches_per_epoch = 5;
    spec.epochs = 2;
    spec.group = group;
    spec.staleness = staleness;
    spec.num_slots = slots;
    spec.slot_bytes = 4096;
    spec.queue_max_bytes = max_bytes;
    spec.parameter_floats = 4;
    spec.num_devices = 3;
    spec.max_executors = 8;
    spec.batch_size = 1;
    spec.train_nodes = 5;
    spec.eval_chunks = 1;
    Result<UniqueFd> fd = Segment::Create(spec);
    REQUIRE(fd.ok());
    Result<Segment> made = Segment::Attach(fd->get(), Access::kReadWrite);
    REQUIRE(made.ok());
    return std::move(*made);
  }

  // Moves the commit word on, as a step would.
  void Commit() { segment.header().version.value.fetch_add(1); }
  void Sample(uint64_t batch, uint64_t bytes = 10) {
    REQUIRE(sampler.Claim() == batch);
    REQUIRE(sampler.Publish(batch, bytes).ok());
  }

  Segment segment;
  Batches sampler;
  Batches other;
  Batches trainer;
};

constexpr auto kAny = Batches::Which::kAny;
constexpr auto kDueOnly = Batches::Which::kDueOnly;

}  // namespace

TEST_CASE("two Samplers claim the lowest batches in turn, up to the free slots") {
  Fixture f;
  CHECK(f.sampler.Claim() == uint64_t{0});
  CHECK(f.other.Claim() == uint64_t{1});
  CHECK(f.sampler.Claim() == uint64_t{2});
  CHECK_FALSE(f.other.Claim().has_value());
  f.Commit();
  CHECK(f.other.Claim() == uint64_t{3});
}

TEST_CASE("the next epoch opens when every batch of this one is committed") {
  Fixture f(1, 0, 8);
  for (uint64_t b = 0; b < 5; ++b) f.Sample(b);
  CHECK_FALSE(f.sampler.Claim().has_value());
  for (int i = 0; i < 4; ++i) f.Commit();
  CHECK_FALSE(f.sampler.Claim().has_value());
  f.Commit();
  CHECK(f.sampler.Claim() == uint64_t{5});
}

TEST_CASE("a Trainer takes the lowest ready batch, whoever published it first") {
  Fixture f;
  REQUIRE(f.sampler.Claim() == uint64_t{0});
  REQUIRE(f.other.Claim() == uint64_t{1});
  CHECK_FALSE(f.trainer.Take(kAny).has_value());
  REQUIRE(f.other.Publish(1, 10).ok());
  CHECK_FALSE(f.trainer.Take(kDueOnly).has_value());
  CHECK(f.trainer.Take(kAny) == uint64_t{1});
  CHECK_FALSE(f.trainer.Due(1));
  CHECK_FALSE(f.trainer.ReadyBelow(1));
  REQUIRE(f.sampler.Publish(0, 10).ok());
  CHECK(f.trainer.ReadyBelow(1));
  CHECK(f.trainer.GiveBack(1).ok());
  CHECK(f.trainer.Take(kDueOnly) == uint64_t{0});
}

TEST_CASE("nobody moves a batch that is not his") {
  Fixture f;
  REQUIRE(f.sampler.Claim() == uint64_t{0});
  CHECK(f.other.Publish(0, 10).code() == Code::kInternal);
  CHECK(f.trainer.MarkTrained(0).code() == Code::kInternal);
  REQUIRE(f.sampler.Publish(0, 10).ok());
  CHECK(f.sampler.Publish(0, 10).code() == Code::kInternal);
  CHECK(f.trainer.GiveBack(0).code() == Code::kInternal);
}

TEST_CASE("the queue's bytes are those of claimed and uncommitted records") {
  Fixture f;
  f.Sample(0, 100);
  CHECK(QueueBytes(f.segment) == 100);
  REQUIRE(f.sampler.Claim() == uint64_t{1});
  CHECK(QueueBytes(f.segment) == 200);  // the largest record is reserved
  REQUIRE(f.sampler.Publish(1, 30).ok());
  CHECK(QueueBytes(f.segment) == 130);
  REQUIRE(f.trainer.Take(kAny) == uint64_t{0});
  REQUIRE(f.trainer.MarkTrained(0).ok());
  CHECK(QueueBytes(f.segment) == 130);
  f.Commit();
  CHECK(QueueBytes(f.segment) == 30);
}

TEST_CASE("an executor's account of the queue is what ledger and directory say, whatever happens") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed ", seed);
    std::mt19937_64 draw(seed);
    Fixture f(1, 0, 1 + draw() % 6, 60 + draw() % 200);
    QueueAccount often;
    QueueAccount seldom;
    std::vector<uint64_t> claimed;
    std::vector<uint64_t> taken;
    const auto pick = [&draw](std::vector<uint64_t>* from) {
      const size_t at = draw() % from->size();
      const uint64_t batch = (*from)[at];
      from->erase(from->begin() + static_cast<std::ptrdiff_t>(at));
      return batch;
    };
    for (int step = 0; step < 200; ++step) {
      switch (draw() % 6) {
        case 0:
        case 1:
          if (const auto batch = f.sampler.Claim()) claimed.push_back(*batch);
          break;
        case 2:
          if (!claimed.empty()) REQUIRE(f.sampler.Publish(pick(&claimed), 1 + draw() % 50).ok());
          break;
        case 3:
          if (const auto batch = f.trainer.Take(kAny)) taken.push_back(*batch);
          break;
        case 4: {  // a Sampler that claims and dies
          const ExecutorId dead{7, static_cast<uint32_t>(1000 + step)};
          f.segment.executor(7).incarnation.store(dead.incarnation);
          f.segment.executor(7).phase.store(0);
          f.segment.header().next_row.store(8);
          Batches lost(f.segment, dead);
          const bool has = lost.Claim().has_value();
          if (draw() % 2 == 0) CHECK(often.Bytes(f.segment) == QueueBytes(f.segment));
          REQUIRE(f.segment.Reclaim(dead.incarnation)->claimed == (has ? 1 : 0));
          break;
        }
        default:
          if (!taken.empty()) REQUIRE(f.trainer.MarkTrained(pick(&taken)).ok());
          if (f.trainer.HeadGroupTrained(f.segment.Version())) f.Commit();
      }
      CHECK(often.Bytes(f.segment) == QueueBytes(f.segment));
      if (draw() % 7 == 0) CHECK(seldom.Bytes(f.segment) == QueueBytes(f.segment));
    }
    CHECK(f.segment.Version() > 1);
  }
}

TEST_CASE("without room only the head group may be claimed") {
  Fixture f(2, 0, 4, 150);
  f.Sample(0, 100);
  CHECK(f.sampler.Claim() == uint64_t{1});  // the head group's other batch
  CHECK(f.sampler.Publish(1, 100).ok());
  CHECK_FALSE(f.sampler.Claimable());
  CHECK_FALSE(f.sampler.Claim().has_value());
  f.Commit();
  CHECK(f.sampler.Claim() == uint64_t{2});
}

TEST_CASE("a reclaimed batch is found again below the place where a Sampler had come to") {
  Fixture f;
  const ExecutorId dead = *f.segment.RegisterExecutor(Role::kSampler, 1);
  Batches lost(f.segment, dead);
  REQUIRE(lost.Claim() == uint64_t{0});
  f.Sample(1);
  f.Sample(2);
  CHECK_FALSE(f.sampler.Claimable());
  REQUIRE(f.segment.Reclaim(dead.incarnation).ok());
  CHECK(f.sampler.ClaimableBelow(1));
  CHECK(f.sampler.Claim() == uint64_t{0});
}

TEST_CASE("a batch is due when the version of its delay is committed") {
  Fixture f(1, 2, 5);
  CHECK(f.trainer.Due(0));
  CHECK(f.trainer.Due(2));
  CHECK_FALSE(f.trainer.Due(3));
  f.Commit();
  CHECK(f.trainer.Due(3));
}

TEST_CASE("the next epoch's batches are due only after the evaluation") {
  Fixture f;
  CHECK_FALSE(f.segment.OpenRun().has_value());
  for (int i = 0; i < 5; ++i) f.Commit();
  CHECK_FALSE(f.trainer.Due(5));
  CHECK(f.segment.OpenRun() == EvalRun{0, EvalNodes::kValidation, 0, false});
  f.segment.header().evaluation.value.store(LedgerWord{BatchState::kCommitted, 0, 0, 0}.Pack());
  CHECK(f.trainer.Due(5));
  CHECK_FALSE(f.segment.OpenRun().has_value());
  CHECK_FALSE(f.segment.EvaluationCommitted(1));
}

TEST_CASE("a drain has ended when nobody works and nothing that is ready is due") {
  Fixture f;
  CHECK(f.trainer.Drained());
  REQUIRE(f.sampler.Claim() == uint64_t{0});
  CHECK_FALSE(f.trainer.Drained());
  REQUIRE(f.sampler.Publish(0, 10).ok());
  CHECK_FALSE(f.trainer.Drained());
  f.Sample(1);
  REQUIRE(f.trainer.Take(kAny) == uint64_t{0});
  CHECK_FALSE(f.trainer.Drained());
  REQUIRE(f.trainer.MarkTrained(0).ok());
  CHECK_FALSE(f.trainer.Drained());  // the head group can be applied
  f.Commit();
  REQUIRE(f.trainer.Take(kAny) == uint64_t{1});
  REQUIRE(f.trainer.MarkTrained(1).ok());
  f.Commit();
  CHECK(f.trainer.Drained());
}

}  // namespace gnnd
