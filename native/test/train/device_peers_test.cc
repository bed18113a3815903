#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "agree.h"
#include "core/ledger/row_shares.h"
#include "device_data.h"
#include "test/device/support.h"
#include "training_loop.h"
#include "undo_torch_check.h"

// Trainers on simulated devices that hold feature rows for each other.

namespace gnnd {
namespace {

using test::Agree;
using test::Data;
using test::Get;
using test::Loop;
using test::Rejoin;
using test::SimPlugin;

// A placement for two Trainers: both hold the ranks below 20, and those up to 100 are dealt.
RowPlacement PlacementOf(uint32_t device) {
  RowPlacement placement;
  placement.device = device;
  placement.lines = {{0, 20, {{device, 0}}}, {20, 100, {{0, 20}, {1, 20}}}};
  placement.row_ns = {device == 0 ? 0.0 : 5.0, device == 1 ? 0.0 : 5.0};
  placement.host_row_ns = 100;
  return placement;
}

Segment SegmentOfTwo() {
  SegmentSpec spec;
  spec.batches_per_epoch = 4;
  spec.epochs = 1;
  spec.group = 1;
  spec.num_slots = 2;
  spec.slot_bytes = 4096;
  spec.queue_max_bytes = 100'000;
  spec.parameter_floats = 4;
  spec.num_devices = 2;
  spec.max_executors = 4;
  spec.batch_size = 1;
  spec.train_nodes = 4;
  const UniqueFd fd = Get(Segment::Create(spec));
  return Get(Segment::Attach(fd.get(), Access::kReadWrite));
}

TEST_CASE("a Trainer whose rows find no memory trains without them, to the same bits") {
  // The parameters' is the first allocation, the gradient's the second.
  const SimPlugin plugin(SimPlugin::Environment{{"GNND_SIM_FAULT", "memory:3"}});
  const auto here = plugin.Open();
  Segment segment = SegmentOfTwo();
  const RowShares shares(segment);
  Data data(21);
  data.AddSamples(false);
  TrainOptions options = data.Options(ModelType::kGraphSage, /*is_half=*/false);
  Loop on_cpu(options);
  options.device.device = here.get();
  options.device.placement = PlacementOf(0);
  options.device.shares = &shares;
  options.device.incarnation = 1;
  Loop loop(options);
  for (const Sample& sample : data.samples) {
    loop.Step(sample);
    on_cpu.Step(sample);
    CHECK(Agree(loop.gradient(), on_cpu.gradient(), 1e-4));
    Rejoin(&loop, on_cpu);
    const auto [rows, bytes] = loop.extracted().traffic;
    CHECK(rows[static_cast<uint32_t>(Tier::kDevice)] == 0);
  }
  CHECK_FALSE(shares.Of(0).has_value());
}

TEST_CASE(
    "rows in another Trainer's memory leave the processor's bits, while it is there and after") {
  for (const char* const seed : {"1", "2"}) {
    const SimPlugin plugin(SimPlugin::Environment{
        {"GNND_SIM_DEVICES", "2"}, {"GNND_SIM_PEERS", "0-1:PCIE"}, {"GNND_SIM_SEED", seed}});
    const auto here = plugin.Open({.index = 0});
    const auto there = plugin.Open({.index = 1});
    Segment segment = SegmentOfTwo();
    const RowShares shares(segment);
    Data data(21);
    for (int round = 0; round < 3; ++round) data.AddSamples(false);
    for (const bool is_half : {false, true}) {
      TrainOptions options = data.Options(ModelType::kGraphSage, is_half);
      Loop on_cpu(options);
      TrainOptions other = options;
      options.device.device = here.get();
      options.device.placement = PlacementOf(0);
      options.device.shares = &shares;
      options.device.incarnation = 1;
      Loop loop(options);
      CHECK(loop.extracted().cache_rows == 0);
      other.device = options.device;
      other.device.device = there.get();
      other.device.placement = PlacementOf(1);
      std::unique_ptr<TorchWork> peer;
      uint32_t step = 0;
      for (const Sample& sample : data.samples) {
        // There from the third batch on, dead after the seventh, another one from the ninth on.
        if (step == 2 || step == 8) {
          other.device.incarnation = 10 + step;
          peer = Get(TorchWork::Create(other));
        }
        if (step == 6) {
          shares.Withdraw(1, 12);
          peer.reset();
        }
        loop.Step(sample);
        on_cpu.Step(sample);
        CHECK(Agree(loop.gradient(), on_cpu.gradient(), 1e-4));
        Rejoin(&loop, on_cpu);
        const auto [rows, bytes] = loop.extracted().traffic;
        uint64_t wanted[kNumTiers] = {};
        for (const uint32_t node : sample.nodes()) {
          const uint32_t rank = data.rank[node];
          const bool is_own = rank < 20 || (rank < 100 && rank % 2 == 0);
          const bool is_there = rank < 100 && peer != nullptr;
          ++wanted[static_cast<uint32_t>(is_own     ? Tier::kDevice
                                         : is_there ? Tier::kPeer
                                                    : Tier::kHost)];
        }
        for (uint32_t kind = 0; kind < kNumTiers; ++kind) CHECK(rows[kind] == wanted[kind]);
        const uint64_t host = wanted[static_cast<uint32_t>(Tier::kHost)];
        CHECK(loop.extracted().staged_rows == host);
        CHECK(loop.extracted().row_wait_ns ==
              100 * host + 5 * wanted[static_cast<uint32_t>(Tier::kPeer)]);
        CHECK(loop.extracted().cache_rows == 60);
        ++step;
      }
      CHECK(step == 12);
      shares.Withdraw(0, 1);
      shares.Withdraw(1, 18);
    }
  }
}

}  // namespace
}  // namespace gnnd
