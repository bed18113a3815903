#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "core/executor/eval_scratch.h"
#include "evaluate.h"
#include "partition.h"
#include "test/device/support.h"
#include "test/support/block_types.h"
#include "test/support/halves.h"
#include "test/support/npy_files.h"
#include "train/work/torch_work.h"
#include "undo_torch_check.h"

// Evaluations on a simulated device: what comes out has the processor's bits, whatever room it has,
// and chunks are computed there.

namespace gnnd {
namespace {

using test::Get;
using test::HasProcessorsProducts;
using test::Partition;
using test::SimPlugin;

const std::vector<ModelType> kModels = test::DeviceBlockTypes();
const auto kAlive = [] { return true; };

// The results of an evaluation of both sets of nodes, by chunk.
struct Evaluated {
  std::vector<EvalResult> results;
  uint64_t chunks = 0;
  uint64_t on_device = 0;
  uint64_t device_ns = 0;
  Status status;

  bool SameAs(const Evaluated& other) const {
    const auto same = [](const EvalResult& a, const EvalResult& b) {
      if (a.sums.items != b.sums.items || a.rows != b.rows) return false;
      if (HasProcessorsProducts()) {
        return a.sums.loss == b.sums.loss && a.sums.counts[kCorrect] == b.sums.counts[kCorrect];
      }
      return std::abs(a.sums.loss - b.sums.loss) <= 0.02 * std::abs(b.sums.loss) + 1e-6;
    };
    return std::ranges::equal(results, other.results, same);
  }
};

// Evaluates with the works in turn, a chunk each.
Evaluated Evaluate(const std::vector<TorchWork*>& works, const ParametersView& parameters) {
  Evaluated evaluated;
  for (const EvalNodes nodes : {EvalNodes::kValidation, EvalNodes::kTest}) {
    EvalShape shape;
    for (TorchWork* work : works) shape = Get(work->PlanEvaluation(nodes, kAlive));
    EvalTask task;
    task.run.nodes = nodes;
    for (task.phase = 0; task.phase < shape.phases; ++task.phase) {
      for (task.chunk = 0; task.chunk < shape.chunks; ++task.chunk) {
        ChunkReport report;
        task.report = &report;
        EvalResult result{};
        TorchWork* const work = works[evaluated.chunks++ % works.size()];
        evaluated.status = work->EvaluateChunk(task, parameters, kAlive, &result);
        if (!evaluated.status.ok()) return evaluated;
        evaluated.results.push_back(result);
        evaluated.on_device += report.on_device ? 1 : 0;
        evaluated.device_ns += report.device_ns;
      }
    }
    works.front()->EndEvaluation(task.run);
  }
  return evaluated;
}

// Parameters that no layer has twice.
std::vector<float> ParametersFor(TorchWork* work, uint64_t version) {
  std::vector<float> parameters(work->manifest().num_floats);
  work->InitParameters(parameters);
  for (size_t i = 0; i < parameters.size(); ++i) {
    parameters[i] += 0.01F * static_cast<float>((i + version) % 7);
  }
  return parameters;
}

Evaluated EvaluateWith(const TrainOptions& options, uint64_t versions = 1) {
  const auto work = Get(TorchWork::Create(options));
  Evaluated last;
  for (uint64_t version = 0; version < versions; ++version) {
    const std::vector<float> parameters = ParametersFor(work.get(), version);
    last = Evaluate({work.get()}, {version, 0, parameters});
  }
  return last;
}

TrainOptions OptionsOf(const Partition& data, ModelType type) {
  TrainOptions options = data.Options(type);
  options.threads = 2;
  options.model.num_layers = 3;
  options.model.dropout = 0.5F;  // must not matter
  if (IsAttention(type)) options.model.heads = 4;
  return options;
}

// Checks that the device evaluates everything in parts of this size, with the processor's bits.
void CheckSame(const TrainOptions& options, const Device& device, uint64_t part_bytes) {
  CAPTURE(static_cast<uint32_t>(options.model.type));
  CAPTURE(part_bytes);
  constexpr uint64_t kVersions = 2;
  const Evaluated expected = EvaluateWith(options, kVersions);
  REQUIRE(expected.status.ok());
  CHECK(expected.on_device == 0);
  TrainOptions there = options;
  there.device.device = &device;
  there.device.eval_part_bytes = part_bytes;
  const uint64_t before = Get(device.Memory()).copied_in_bytes;
  const Evaluated evaluated = EvaluateWith(there, kVersions);
  CHECK(evaluated.status.message() == "");
  CHECK(evaluated.on_device == evaluated.chunks);
  CHECK(evaluated.chunks == expected.chunks);
  CHECK(evaluated.SameAs(expected));
  CHECK(Get(device.Memory()).copied_in_bytes > before);
  for (const uint64_t used : Get(device.Memory()).used_bytes) CHECK(used == 0);
}

TEST_CASE("exact evaluations on a device have the processor's bits, in parts of any size") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  const Partition data(700, 4, 22, 3);
  const std::vector<Half> halves = test::RandomHalves(data.features.size(), 3);
  for (const ModelType type : kModels) {
    for (const uint64_t part_bytes : {uint64_t{0}, uint64_t{1} << 16}) {
      TrainOptions options = OptionsOf(data, type);
      CheckSame(options, *device, part_bytes);
      options.features = RowTable(halves, 22);
      CheckSame(options, *device, part_bytes);
    }
  }
}

TEST_CASE("whatever follows, joins and weighs layers is evaluated on a device with the same bits") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  const Partition data(500, 4, 9, 5);
  std::vector<float> weights(data.graph.view().num_edges());
  for (size_t e = 0; e < weights.size(); ++e) weights[e] = static_cast<float>(e % 5);
  for (const ModelType type : {ModelType::kGraphSage, ModelType::kGatV2, ModelType::kPinSage}) {
    for (const Normalization normalization :
         {Normalization::kNone, Normalization::kL2, Normalization::kLayer}) {
      if (type == ModelType::kPinSage && normalization != Normalization::kL2) continue;
      for (const Activation activation :
           {Activation::kRelu, Activation::kElu, Activation::kLeakyRelu}) {
        TrainOptions options = OptionsOf(data, type);
        options.model.normalization = normalization;
        options.model.activation = activation;
        options.model.residual = activation == Activation::kElu;
        options.model.hidden_dim = activation == Activation::kLeakyRelu ? 64 : 16;
        if (!IsAttention(type)) options.edge_weights = weights;
        CheckSame(options, *device, 0);
      }
    }
  }
}

TEST_CASE("a row whose neighbours alone are more than a part is summed by the host") {
  Partition data(700, 4, 22, 7);
  std::vector<std::vector<uint32_t>> rows(700);
  for (uint32_t v = 1; v < 690; ++v) {  // a hub, a ring, and some without any neighbour
    rows[0].push_back(v);
    rows[v] = {0, v == 1 ? 689 : v - 1};
  }
  data.graph = test::GraphOf(rows);
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  for (const ModelType type : kModels) {
    CheckSame(OptionsOf(data, type), *device, uint64_t{1} << 14);
  }
}

TEST_CASE("sampled evaluations on a device have the processor's bits") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  const Partition data(3000, 4, 22, 9);  // several chunks
  const std::vector<Half> halves = test::RandomHalves(data.features.size(), 3);
  for (const ModelType type : kModels) {
    for (const bool is_half : {false, true}) {
      TrainOptions options = OptionsOf(data, type);
      if (is_half) options.features = RowTable(halves, 22);
      options.precision = is_half ? Precision::kBfloat16 : Precision::kFloat32;
      options.eval_sampler.emplace();
      options.eval_sampler->fanouts = {5, 4, 3};
      if (type == ModelType::kGcn) options.eval_sampler->weights = EdgeWeights::kGcn;
      CheckSame(options, *device, 0);
    }
  }
}

TEST_CASE("evaluations read features that the device keeps from there") {
  constexpr uint32_t kNodes = 1500;
  constexpr uint32_t kColumns = 256;  // rows that outweigh what says where they lie
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  const Partition data(kNodes, 4, kColumns, 23);
  std::vector<uint32_t> order(kNodes);
  std::vector<uint32_t> ranks(kNodes);
  for (uint32_t rank = 0; rank < kNodes; ++rank) {
    order[rank] = rank * 7 % kNodes;
    ranks[order[rank]] = rank;
  }
  for (const bool sampled : {false, true}) {
    TrainOptions options = OptionsOf(data, ModelType::kGraphSage);
    options.model.hidden_dim = 4;  // rows of later layers are copied either way
    if (sampled) {
      options.eval_sampler.emplace();
      options.eval_sampler->fanouts = {5, 4, 3};
    }
    const Evaluated expected = EvaluateWith(options);
    options.device.device = device.get();
    options.hot_order = order;
    options.hot_ranks = ranks;
    // Bytes that evaluations copy to the device where it keeps so many rows.
    const auto copied = [&](uint64_t rows) {
      options.device.cache_bytes = rows * options.features.row_bytes();
      const auto work = Get(TorchWork::Create(options));
      const std::vector<float> parameters = ParametersFor(work.get(), 0);
      const uint64_t before = Get(device->Memory()).copied_in_bytes;
      const Evaluated evaluated = Evaluate({work.get()}, {0, 0, parameters});
      CHECK(evaluated.on_device == evaluated.chunks);
      CHECK(evaluated.SameAs(expected));
      return Get(device->Memory()).copied_in_bytes - before;
    };
    const uint64_t staged = copied(0);
    CHECK(copied(kNodes / 2) < staged * 3 / 4);
    CHECK(copied(kNodes) < staged / 4);
  }
}

TEST_CASE("a Trainer on a device and one on the processor share chunks, rows and sums") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  const Partition data(3000, 4, 40, 11);
  for (const ModelType type : {ModelType::kGraphSage, ModelType::kGcn, ModelType::kGat}) {
    TrainOptions options = OptionsOf(data, type);
    const Evaluated expected = EvaluateWith(options, 2);
    const EvalLayout layout = EvalLayout::Of(options.model, data.labels.size());
    const auto scratch = Get(EvalScratch::Create(layout.total_bytes + layout.kept_bytes, ""));
    options.eval_place.fd = scratch.get();
    const auto on_cpu = Get(TorchWork::Create(options));
    options.device.device = device.get();
    const auto there = Get(TorchWork::Create(options));
    for (uint64_t version = 0; version < 2; ++version) {
      const std::vector<float> parameters = ParametersFor(there.get(), version);
      const Evaluated shared = Evaluate({on_cpu.get(), there.get()}, {version, 0, parameters});
      CHECK(shared.on_device == shared.chunks / 2);
      if (version == 1) CHECK(shared.SameAs(expected));
    }
  }
}

TEST_CASE("sums of features that are kept go to a device instead of their neighbours' rows") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  const Partition data(3000, 4, 40, 13);
  TrainOptions options = OptionsOf(data, ModelType::kGcn);
  options.model.num_layers = 1;
  const EvalLayout layout = EvalLayout::Of(options.model, data.labels.size());
  const auto scratch = Get(EvalScratch::Create(layout.total_bytes + layout.kept_bytes, ""));
  options.eval_place.fd = scratch.get();
  options.device.device = device.get();
  // With an output as wide as its input, the layer sums first.
  options.model.out_dim = 40;
  const auto work = Get(TorchWork::Create(options));
  const std::vector<float> parameters = ParametersFor(work.get(), 0);
  const auto copied = [&] {
    const uint64_t before = Get(device->Memory()).copied_in_bytes;
    REQUIRE(Evaluate({work.get()}, {0, 0, parameters}).status.ok());
    return Get(device->Memory()).copied_in_bytes - before;
  };
  const uint64_t first = copied();
  const uint64_t rows = Evaluate({work.get()}, {0, 0, parameters}).results.size();
  REQUIRE(rows > 0);
  const uint64_t targets = data.val.size() + data.test.size();
  CHECK(copied() == targets * 40 * sizeof(float));
  CHECK(first > 2 * copied());
}

TEST_CASE("nodes are predicted on a device to the processor's rows") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  const Partition data(2000, 4, 20, 15);
  for (const bool sampled : {false, true}) {
    const auto predicted = [&](const Device* where, uint64_t* on_device) {
      const test::TempFolder folder;
      std::filesystem::create_directories(folder.path() + "/out");
      TrainOptions options = OptionsOf(data, ModelType::kGraphSage);
      options.device.device = where;
      options.val_nodes = options.test_nodes = {};
      const uint32_t last = options.model.num_layers - 1;
      options.predictions = {folder.path(),
                             {{OutputKind::kLogits, last}, {OutputKind::kEmbeddings, 0}}};
      options.predicts_all = true;
      for (uint32_t v = 0; v < data.labels.size(); ++v) options.predicted_nodes.push_back(v);
      if (sampled) {
        options.eval_sampler.emplace();
        options.eval_sampler->fanouts = {5, 4, 3};
      }
      const EvalLayout layout = EvalLayout::Of(options.model, data.labels.size());
      const auto scratch = Get(EvalScratch::Create(layout.total_bytes, "/tmp"));
      options.eval_place.fd = scratch.get();
      const Evaluated evaluated = EvaluateWith(options);
      *on_device = evaluated.on_device;
      REQUIRE(evaluated.status.ok());
      std::vector<float> all;
      for (const char* name : {"logits.npy", "embeddings.npy"}) {
        const auto array = Get(NpyArray::Open(folder.path() + "/out/" + name));
        const auto values = array.values<float>();
        all.insert(all.end(), values.begin(), values.end());
      }
      return all;
    };
    uint64_t there = 0;
    uint64_t here = 0;
    const std::vector<float> rows = predicted(device.get(), &there);
    const std::vector<float> expected = predicted(nullptr, &here);
    if (HasProcessorsProducts()) {
      CHECK(rows == expected);
    } else {
      for (size_t i = 0; i < rows.size(); ++i) {
        CHECK(rows[i] == doctest::Approx(expected[i]).epsilon(0.02));
      }
    }
    const uint64_t hidden = OptionsOf(data, ModelType::kGraphSage).model.hidden_dim;
    CHECK(rows.size() == data.labels.size() * (4 + hidden));
    CHECK(there > 0);
    CHECK(here == 0);
  }
}

TEST_CASE("a device without room for evaluations leaves them to the processor") {
  const Partition data(700, 4, 22, 17);
  const SimPlugin plugin(SimPlugin::Environment{});
  for (const bool sampled : {false, true}) {
    TrainOptions options = OptionsOf(data, ModelType::kGat);
    if (sampled) {
      options.eval_sampler.emplace();
      options.eval_sampler->fanouts = {5, 4, 3};
    }
    const Evaluated expected = EvaluateWith(options);
    const auto device = plugin.Open({.budget_bytes = uint64_t{1} << 20});
    options.device.device = device.get();
    const Evaluated evaluated = EvaluateWith(options);
    REQUIRE(evaluated.status.ok());
    CHECK(evaluated.on_device == 0);
    CHECK(evaluated.SameAs(expected));
  }
}

TEST_CASE("a device that has no more memory in mid-evaluation leaves the rest to the processor") {
  constexpr uint32_t kNodes = 3000;
  Partition data(kNodes, 4, 22, 19);
  std::vector<std::vector<uint32_t>> rows(kNodes);
  for (uint32_t v = 2600; v < kNodes; ++v) {  // the first chunk's nodes have no neighbours
    for (uint32_t k = 0; k < 200; ++k) rows[v].push_back((v * 37 + k * 13) % kNodes);
  }
  data.graph = test::GraphOf(rows);
  TrainOptions options = OptionsOf(data, ModelType::kGat);
  options.model.hidden_dim = 64;
  options.eval_sampler.emplace();
  options.eval_sampler->fanouts = {100, 5, 5};
  const Evaluated expected = EvaluateWith(options);
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open({.budget_bytes = uint64_t{64} << 20});
  options.device.device = device.get();
  const auto work = Get(TorchWork::Create(options));
  const gnnd_device_memory memory = Get(device->Memory());
  uint64_t left = memory.budget_bytes - (uint64_t{1} << 20);
  for (const uint64_t used : memory.used_bytes) left -= used;
  const auto others = Get(DeviceBuffer<std::byte>::Allocate(*device, left, DevicePurpose::kCache));
  const std::vector<float> parameters = ParametersFor(work.get(), 0);
  const Evaluated evaluated = Evaluate({work.get()}, {0, 0, parameters});
  CHECK(evaluated.status.message() == "");
  CHECK(evaluated.on_device == 1);
  CHECK(evaluated.chunks == 4);
  CHECK(evaluated.SameAs(expected));
  // A device that was given up once stays so: the processor evaluates.
  CHECK(Evaluate({work.get()}, {0, 0, parameters}).on_device == 0);
}

TEST_CASE("where torch finds no memory evaluations fall back to the processor") {
  const Partition data(700, 4, 22, 23);
  for (const bool sampled : {false, true}) {
    TrainOptions options = OptionsOf(data, ModelType::kGraphSage);
    if (sampled) {
      options.eval_sampler.emplace();
      options.eval_sampler->fanouts = {5, 4, 3};
    }
    const Evaluated expected = EvaluateWith(options);
    for (const char* const fault : {"torch-memory:1", "torch-memory:9", "torch-error:2:9"}) {
      CAPTURE(fault);
      const SimPlugin plugin(SimPlugin::Environment{{"GNND_SIM_FAULT", fault}});
      const auto device = plugin.Open();
      options.device.device = device.get();
      const auto work = Get(TorchWork::Create(options));
      const std::vector<float> parameters = ParametersFor(work.get(), 0);
      const Evaluated evaluated = Evaluate({work.get()}, {0, 0, parameters});
      CHECK(evaluated.status.message() == "");
      CHECK(evaluated.on_device < evaluated.chunks);
      CHECK(evaluated.SameAs(expected));
    }
    options.device.device = nullptr;
  }
}

TEST_CASE("a device that is lost or faults in mid-evaluation says so, at once and from then on") {
  const Partition data(700, 4, 22, 21);
  for (const auto& [fault, code] :
       std::vector<std::pair<std::string, Code>>{{"lost:60", Code::kDeviceLost},
                                                 {"launch:60", Code::kDeviceFailed},
                                                 {"torch-error:700:9", Code::kDeviceFailed}}) {
    for (const bool sampled : {false, true}) {
      const SimPlugin plugin(SimPlugin::Environment{{"GNND_SIM_FAULT", fault}});
      const auto device = plugin.Open();
      TrainOptions options = OptionsOf(data, ModelType::kGat);
      options.device.device = device.get();
      if (sampled) {
        options.eval_sampler.emplace();
        options.eval_sampler->fanouts = {5, 4, 3};
      }
      const auto work = Get(TorchWork::Create(options));
      const std::vector<float> parameters = ParametersFor(work.get(), 0);
      uint64_t version = 0;
      Evaluated evaluated;
      while (evaluated.status.ok() && version < 50) {
        evaluated = Evaluate({work.get()}, {version++, 0, parameters});
      }
      CHECK(evaluated.status.code() == code);
      CHECK(Evaluate({work.get()}, {version, 0, parameters}).status.code() == code);
    }
  }
}

}  // namespace
}  // namespace gnnd
