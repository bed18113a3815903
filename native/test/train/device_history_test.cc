#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "history_options.h"
#include "partition.h"
#include "test/device/support.h"
#include "test/support/block_types.h"
#include "training_loop.h"
#include "undo_torch_check.h"

// History of a Trainer on a simulated device: samples are pruned on the host, rows that are kept
// come and go, and what is found, computed and kept is the processor's.

namespace gnnd {
namespace {

using test::HasProcessorsProducts;
using test::Loop;
using test::Partition;
using test::SameBits;
using test::SimPlugin;
using test::TestRecord;
using test::WithHistory;

const std::vector<ModelType> kModels = test::DeviceBlockTypes();

void CheckSame(const ExtractReport& device, const ExtractReport& cpu) {
  CHECK(device.history.look_ups == cpu.history.look_ups);
  CHECK(device.history.pruned_rows == cpu.history.pruned_rows);
  for (uint32_t i = 0; i < kHistoryBuckets; ++i) {
    CHECK(device.history.level_hits[i] == cpu.history.level_hits[i]);
    CHECK(device.history.ages[i] == cpu.history.ages[i]);
  }
  // All rows are staged: there is no cache, and the device cannot read the host's rows.
  CHECK(device.staged_rows == cpu.traffic.rows[static_cast<uint32_t>(Tier::kHost)]);
}

void CheckUpdate(const HistoryUpdate& device, const HistoryUpdate& cpu) {
  CHECK(device.admitted == cpu.admitted);
  CHECK(device.evicted == cpu.evicted);
  CHECK(device.compared == cpu.compared);
  CHECK(device.cosine_millionths == cpu.cosine_millionths);
}

TEST_CASE("history: a device finds, computes and keeps what the processor does") {
  if (!HasProcessorsProducts()) return;  // other products, other norms
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  const Partition data(200, 4, 22, 12);
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    for (const ModelType type : kModels) {
      CAPTURE(static_cast<uint32_t>(precision));
      CAPTURE(static_cast<uint32_t>(type));
      TrainOptions options = data.Options(type);
      options.model.num_layers = 3;
      if (IsAttention(type)) options.model.heads = 4;
      options.model.dropout = 0.3F;
      options.precision = precision;
      options = WithHistory(options, 0b110, 0.8, 3);
      Loop cpu(options);
      options.device.device = device.get();
      Loop simulated(options);
      uint64_t hits = 0;
      for (uint32_t batch = 0; batch < 8; ++batch) {
        const std::vector<uint32_t> seeds(data.train.begin() + batch * 5,
                                          data.train.begin() + batch * 5 + 30);
        const TestRecord record(data.graph,
                                {{17, 0, batch}, seeds, {3, 3, 3}, type == ModelType::kGcn});
        const BatchReport expected = cpu.Step(record);
        const BatchReport report = simulated.Step(record);
        CHECK(report.sums.loss == expected.sums.loss);
        CHECK(SameBits(simulated.gradient(), cpu.gradient()));
        CheckSame(simulated.extracted(), cpu.extracted());
        CheckUpdate(report.history, expected.history);
        for (const uint64_t of : simulated.extracted().history.level_hits) hits += of;
      }
      CHECK(hits > 0);
      CHECK(SameBits(simulated.parameters(), cpu.parameters()));
    }
  }
}

}  // namespace
}  // namespace gnnd
