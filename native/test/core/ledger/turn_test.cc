#include "core/ledger/turn.h"

#include <doctest/doctest.h>

#include <utility>

namespace gnnd {
namespace {

Segment Make() {
  SegmentSpec spec;
  spec.batches_per_epoch = 1;
  spec.epochs = 1;
  spec.num_slots = 1;
  spec.slot_bytes = 1;
  spec.queue_max_bytes = 1;
  spec.parameter_floats = 1;
  spec.max_executors = 8;
  spec.batch_size = 1;
  spec.train_nodes = 1;
  Result<UniqueFd> fd = Segment::Create(spec);
  REQUIRE(fd.ok());
  Result<Segment> segment = Segment::Attach(fd->get(), Access::kReadWrite);
  REQUIRE(segment.ok());
  return std::move(*segment);
}

}  // namespace

TEST_CASE("a device is its Sampler's until that hands it to a standby who is there") {
  Segment segment = Make();
  Turn turn(segment, 0);
  turn.SamplerEnters();
  CHECK(turn.SamplerHolds());
  CHECK_FALSE(turn.SamplerHandsOver());
  turn.StandbyEnters();
  CHECK(turn.SamplerHolds());
  CHECK(turn.SamplerHandsOver());
  CHECK(turn.StandbyHolds());
  CHECK_FALSE(turn.SamplerHandsOver());
  CHECK(turn.StandbyYields());
  CHECK(turn.SamplerHolds());
}

TEST_CASE("a Sampler that will not come back leaves the device to the standby for good") {
  Segment segment = Make();
  Turn turn(segment, 0);
  turn.StandbyEnters();
  segment.MarkSamplerGone(0);
  CHECK(turn.StandbyHolds());
  CHECK_FALSE(turn.StandbyYields());
  turn.StandbyLeaves();
  turn.StandbyEnters();  // its successor finds the device its own
  CHECK(turn.StandbyHolds());
}

TEST_CASE("a Sampler that comes back gets the device at once if no standby is there") {
  Segment segment = Make();
  Turn turn(segment, 0);
  segment.MarkSamplerGone(0);
  turn.SamplerEnters();
  CHECK(turn.SamplerHolds());
}

TEST_CASE("a Sampler that comes back beside a working standby waits for its turn") {
  Segment segment = Make();
  Turn turn(segment, 0);
  turn.StandbyEnters();
  segment.MarkSamplerGone(0);
  turn.SamplerEnters();
  CHECK(turn.StandbyHolds());
  CHECK(turn.StandbyYields());
  CHECK(turn.SamplerHolds());
}

TEST_CASE("reclaiming a standby twice does not take the turn from its successor") {
  Segment segment = Make();
  Turn turn(segment, 0);
  const ExecutorId dead = *segment.RegisterExecutor(Role::kStandby, 0);
  turn.StandbyEnters();
  REQUIRE(turn.SamplerHandsOver());
  CHECK(segment.Reclaim(dead.incarnation)->turns == 1);
  CHECK(turn.SamplerHolds());
  turn.StandbyEnters();
  REQUIRE(turn.SamplerHandsOver());
  CHECK(segment.Reclaim(dead.incarnation)->turns == 0);
  CHECK(turn.StandbyHolds());
  CHECK(turn.StandbyPresent());
}

}  // namespace gnnd
