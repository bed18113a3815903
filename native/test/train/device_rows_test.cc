#include <ATen/Context.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "agree.h"
#include "core/base/half.h"
#include "core/executor/train_work.h"
#include "core/graph/npy.h"
#include "core/metric/metric.h"
#include "core/model/row_manifest.h"
#include "core/prepare/propagation.h"
#include "core/vec/convert.h"
#include "evaluate.h"
#include "test/device/support.h"
#include "test/support/npy_files.h"
#include "train/work/torch_work.h"
#include "undo_torch_check.h"

// A Trainer of a model over rows on a simulated device beside one on the processor: gradients,
// losses, evaluations and what comes of them have the same bits, wherever rows are.

namespace gnnd {
namespace {

using test::Get;
using test::SimPlugin;
using test::TempFolder;

constexpr uint32_t kColumns = 19;
constexpr uint32_t kTrain = 150;
constexpr uint32_t kVal = 70;
constexpr uint32_t kTest = 33;
constexpr uint32_t kRows = kTrain + kVal + kTest;
constexpr uint32_t kBatch = 40;
constexpr uint32_t kClasses = 4;
constexpr uint32_t kHops = 2;

// Row files of one operator, in a row type.
struct Stored {
  explicit Stored(RowType type) {
    std::mt19937_64 random(5);
    for (uint32_t hop = 0; hop <= kHops; ++hop) {
      std::vector<float> rows(kRows * kColumns);
      for (float& value : rows) value = static_cast<float>(random() % 2001) / 1000.0F - 1.0F;
      const std::string path = folder / RowFile(0, hop);
      if (type == RowType::kFloat32) {
        test::WriteNpy(path, rows, {kRows, kColumns});
        continue;
      }
      std::vector<uint16_t> narrow;
      for (const float value : rows) narrow.push_back(static_cast<uint16_t>(ToBfloat16(value)));
      const std::vector<uint64_t> shape = {kRows, kColumns};
      std::string bytes = NpyHeader(NpyType::kUint16, shape);
      bytes.append(reinterpret_cast<const char*>(narrow.data()), narrow.size() * sizeof(uint16_t));
      test::WriteFile(path, bytes);
    }
    std::vector<uint32_t> nodes;
    std::vector<int32_t> labels;
    for (uint32_t row = 0; row < kRows; ++row) {
      nodes.push_back(row * 7 + 3);
      labels.push_back(static_cast<int32_t>(random() % kClasses));
    }
    test::WriteNpy(folder / kNodesFile, nodes);
    test::WriteNpy(folder / kLabelsFile, labels);
  }
  TempFolder folder;
};

ModelSpec SpecOf(ModelType type, ModelVariant variant = ModelVariant::kNone) {
  ModelSpec spec;
  spec.type = type;
  spec.variant = variant;
  spec.num_layers = type == ModelType::kSign ? 2 : 1;
  spec.in_dim = kColumns;
  spec.hidden_dim = 16;
  spec.out_dim = kClasses;
  if (type == ModelType::kHoga) spec.heads = 2;
  spec.num_operators = 1;
  spec.num_hops = kHops;
  if (type == ModelType::kSgc) return spec;
  spec.dropout = 0.4F;
  spec.input_dropout = 0.1F;
  spec.attention_dropout = type == ModelType::kHoga ? 0.2F : 0.0F;
  return spec;
}

struct Case {
  const char* name;
  ModelSpec spec;
};

std::vector<Case> Cases() {
  std::vector<Case> cases = {
      {"SGC", SpecOf(ModelType::kSgc)},
      {"SIGN", SpecOf(ModelType::kSign, ModelVariant::kFused)},
      {"SIGN, concatenated", SpecOf(ModelType::kSign, ModelVariant::kConcat)},
      {"HOGA", SpecOf(ModelType::kHoga, ModelVariant::kGated)},
      {"HOGA of DAC'24", SpecOf(ModelType::kHoga, ModelVariant::kDac24)},
  };
  Case residual{"HOGA with a residual and layers of hops", cases[3].spec};
  residual.spec.residual = true;
  residual.spec.hop_layers = 2;
  residual.spec.hop_hidden_dim = 12;
  cases.push_back(residual);
  return cases;
}

RowsOptions OptionsOf(const Stored& stored, const ModelSpec& spec) {
  RowsOptions options;
  options.model = spec;
  options.random_seed = 11;
  options.threads = 2;
  options.folder = stored.folder.path();
  options.train = kTrain;
  options.val = kVal;
  options.test = kTest;
  options.batch_size = kBatch;
  return options;
}

// The results of two epochs and an evaluation.
struct Left {
  std::vector<float> parameters;
  std::vector<float> first_gradient;
  std::vector<float> gradient;
  std::vector<double> losses;
  std::vector<uint64_t> correct;
  ExtractReport extracted;
  std::vector<DeviceUse> uses;  // after each batch
};

bool SameLeft(const Left& a, const Left& b) {
  if (!test::HasProcessorsProducts()) {
    // Differences of products grow from step to step: gradients without a clear sign go either way.
    const auto near = [](double x, double y) { return std::abs(x - y) <= 0.02 * std::abs(y); };
    return test::Agree(a.first_gradient, b.first_gradient, 1e-4) &&
           std::ranges::equal(a.losses, b.losses, near);
  }
  return std::memcmp(a.parameters.data(), b.parameters.data(), a.parameters.size() * 4) == 0 &&
         std::memcmp(a.gradient.data(), b.gradient.data(), a.gradient.size() * 4) == 0 &&
         a.losses == b.losses && a.correct == b.correct;
}

Left Train(const RowsOptions& options) {
  std::unique_ptr<TorchWork> work = Get(TorchWork::Create(options));
  Left left;
  left.parameters.resize(work->manifest().num_floats);
  work->InitParameters(left.parameters);
  left.gradient.resize(left.parameters.size());
  std::vector<float> memory(work->optimizer_floats());
  uint64_t step = 0;
  for (uint32_t epoch = 0; epoch < 2; ++epoch) {
    for (uint32_t batch = 0; batch * kBatch < kTrain; ++batch) {
      Sample sample(SampleKind::kRows, {0, epoch, batch});
      sample.AddNodes({}, std::min(kBatch, kTrain - batch * kBatch), {});
      const auto buffer = static_cast<uint32_t>(step % kExtractBuffers);
      left.extracted = ExtractReport();
      test::Check(work->Extract(sample, buffer, &left.extracted));
      left.uses.push_back(left.extracted.device);
      BatchReport report;
      test::Check(work->ComputeGradient(sample, buffer, {step, 0, left.parameters}, left.gradient,
                                        &report));
      if (step == 0) left.first_gradient = left.gradient;
      left.losses.push_back(report.sums.loss);
      left.correct.push_back(report.sums.counts[kCorrect]);
      std::vector<float> parameters(left.parameters.size());
      std::vector<float> next(memory.size());
      const GradientView gradients[] = {{step, true, left.gradient}};
      work->Apply(
          {step++, report.sums.items, gradients, left.parameters, memory, parameters, next});
      left.parameters = parameters;
      memory = next;
    }
  }
  test::EvalReport evaluated;
  test::Check(test::Evaluate(*work, left.parameters, [] { return true; }, &evaluated));
  left.losses.push_back(evaluated.val_loss_sum);
  left.correct.push_back(evaluated.val_correct);
  left.correct.push_back(evaluated.test_correct);
  return left;
}

}  // namespace

TEST_CASE("device rows: every model has the processor's bits on a device") {
  const Stored stored(RowType::kFloat32);
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  for (const Case& each : Cases()) {
    CAPTURE(each.name);
    RowsOptions options = OptionsOf(stored, each.spec);
    const Left expected = Train(options);
    options.device = device.get();
    const Left left = Train(options);
    CHECK(SameLeft(left, expected));
    // The host gathered them and copied them there.
    CHECK(left.extracted.staged_rows > 0);
    CHECK(left.extracted.staged_rows ==
          left.extracted.traffic.rows[static_cast<uint32_t>(Tier::kHost)]);
    CHECK(left.extracted.device.workspace_bytes > 0);
    CHECK(left.extracted.device.registered_bytes > 0);
  }
}

TEST_CASE("device rows: the device's own rows make the same model, in every type") {
  for (const RowType type : {RowType::kFloat32, RowType::kBfloat16}) {
    const Stored stored(type);
    const SimPlugin plugin(SimPlugin::Environment{});
    const auto device = plugin.Open();
    for (const ModelType model : {ModelType::kSgc, ModelType::kSign}) {
      const bool is_sgc = model == ModelType::kSgc;
      const ModelVariant variant = is_sgc ? ModelVariant::kNone : ModelVariant::kFused;
      RowsOptions options = OptionsOf(stored, SpecOf(model, variant));
      const Left expected = Train(options);
      for (const uint32_t chunk : {1U, 8U}) {
        options.chunk = chunk;
        options.device = nullptr;
        options.tier = RowTier::kHost;
        const Left on_host = Train(options);
        options.device = device.get();
        options.tier = RowTier::kDevice;
        options.device_splits = DeviceSplits::kAll;
        const Left left = Train(options);
        CHECK(SameLeft(left, on_host));
        CHECK((chunk != 1 || SameLeft(left, expected)));
        const uint64_t tokens = is_sgc ? 1 : kHops + 1;
        CHECK(left.extracted.device.cache_bytes >= tokens * kRows * kColumns * BytesOf(type));
        CHECK(left.extracted.traffic.rows[0] > 0);
        CHECK(left.extracted.traffic.rows[static_cast<uint32_t>(Tier::kHost)] == 0);
        CHECK(left.extracted.staged_rows == 0);
        options.device_splits = DeviceSplits::kTrain;
        const Left trained = Train(options);
        CHECK(SameLeft(trained, on_host));
        CHECK(trained.extracted.device.cache_bytes < left.extracted.device.cache_bytes);
      }
    }
  }
}

TEST_CASE("device rows: products are as exact as the job says, whatever torch was told before") {
  const Stored stored(RowType::kFloat32);
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  at::globalContext().setAllowTF32CuBLAS(true);
  at::globalContext().setAllowBF16ReductionCuBLAS(true);
  RowsOptions options = OptionsOf(stored, SpecOf(ModelType::kSgc));
  options.device = device.get();
  const std::unique_ptr<TorchWork> work = Get(TorchWork::Create(options));
  CHECK_FALSE(at::globalContext().allowTF32CuBLAS());
  CHECK(at::globalContext().allowBF16ReductionCuBLAS() ==
        at::CuBLASReductionOption::DisallowReducedPrecisionAllowSplitK);
}

TEST_CASE("device rows: nothing is allocated or registered once batches have their room") {
  const Stored stored(RowType::kFloat32);
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  for (const RowTier tier : {RowTier::kHost, RowTier::kDevice}) {
    RowsOptions options = OptionsOf(stored, SpecOf(ModelType::kSign, ModelVariant::kFused));
    options.device = device.get();
    options.tier = tier;
    const Left left = Train(options);
    // Within the first epoch, both buffers hold a whole batch twice, the second time in one piece.
    for (size_t batch = left.uses.size() / 2; batch < left.uses.size(); ++batch) {
      CHECK(left.uses[batch].workspace_bytes == left.uses.back().workspace_bytes);
      CHECK(left.uses[batch].cache_bytes == left.uses.back().cache_bytes);
      CHECK(left.uses[batch].registered_bytes == left.uses.back().registered_bytes);
    }
  }
}

TEST_CASE("device rows: what does not fit or fails says so, and all memory comes back") {
  const Stored stored(RowType::kFloat32);
  RowsOptions options = OptionsOf(stored, SpecOf(ModelType::kSign, ModelVariant::kFused));
  options.tier = RowTier::kDevice;
  const SimPlugin plugin(SimPlugin::Environment{});
  {
    const auto device = plugin.Open({.budget_bytes = 30'000});
    options.device = device.get();
    const Status status = TorchWork::Create(options).status();
    CHECK(status.code() == Code::kDeviceMemory);
    const DeviceUse use = Get(device->Use());
    CHECK(use.cache_bytes + use.model_bytes + use.workspace_bytes == 0);
  }
  const SimPlugin faulty(SimPlugin::Environment{{"GNND_SIM_FAULT", "lost:60"}});
  const auto device = faulty.Open();
  options.device = device.get();
  std::unique_ptr<TorchWork> work = Get(TorchWork::Create(options));
  std::vector<float> parameters(work->manifest().num_floats);
  std::vector<float> gradient(parameters.size());
  work->InitParameters(parameters);
  Status status;
  for (uint32_t epoch = 0; status.ok() && epoch < 9; ++epoch) {
    Sample sample(SampleKind::kRows, {0, epoch, 0});
    sample.AddNodes({}, kBatch, {});
    ExtractReport extracted;
    BatchReport report;
    status = work->Extract(sample, 0, &extracted);
    if (status.ok())
      status = work->ComputeGradient(sample, 0, {epoch, 0, parameters}, gradient, &report);
  }
  CHECK(status.code() == Code::kDeviceLost);
}

}  // namespace gnnd
