#include "core/executor/prediction_files.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/executor/eval_scratch.h"
#include "core/graph/npy.h"
#include "core/kernels/loss.h"
#include "test/support/npy_files.h"
#include "test/train/partition.h"
#include "train/tasks/row_targets.h"
#include "train/tasks/task.h"
#include "train/work/torch_work.h"

namespace gnnd {
namespace {

using test::Partition;

const auto kAlive = [] { return true; };

constexpr uint32_t kLayers = 3;

const std::vector<OutputChoice> kPredicted = {{OutputKind::kPredictions, kLayers - 1},
                                              {OutputKind::kLogits, kLayers - 1},
                                              {OutputKind::kProbabilities, kLayers - 1}};

// An inference of a graph's nodes by any number of Trainers, in a folder of its own.
struct Inference {
  Inference(const Partition& data, std::vector<uint32_t> nodes,
            std::vector<OutputChoice> outputs = kPredicted) {
    std::filesystem::create_directories(folder.path() + "/out");
    options = data.Options(ModelType::kGraphSage);
    options.model.num_layers = kLayers;
    options.val_nodes = options.test_nodes = {};
    options.predictions = {folder.path(), std::move(outputs)};
    options.predicts_all = nodes.empty();
    if (nodes.empty()) {
      for (uint32_t v = 0; v < data.labels.size(); ++v) nodes.push_back(v);
    }
    options.predicted_nodes = std::move(nodes);
    const EvalLayout layout = EvalLayout::Of(options.model, data.labels.size());
    auto made = EvalScratch::Create(layout.total_bytes, "/tmp");
    REQUIRE(made.ok());
    scratch = std::move(*made);
    options.eval_place.fd = scratch.get();
  }

  std::unique_ptr<TorchWork> Trainer() const {
    auto work = TorchWork::Create(options);
    REQUIRE(work.ok());
    return std::move(*work);
  }

  std::vector<float> Parameters(TorchWork* work) const {
    std::vector<float> parameters(work->manifest().num_floats);
    work->InitParameters(parameters);
    return parameters;
  }

  // So many chunks in order, from the first; answers how many were computed.
  uint64_t Run(uint64_t chunks) const {
    const std::unique_ptr<TorchWork> work = Trainer();
    const std::vector<float> parameters = Parameters(work.get());
    const auto shape = work->PlanEvaluation(EvalNodes::kValidation, kAlive);
    REQUIRE(shape.ok());
    CHECK(work->PlanEvaluation(EvalNodes::kTest, kAlive)->phases == 0);
    total = uint64_t{shape->phases} * shape->chunks;
    uint64_t computed = 0;
    for (uint64_t word = 0; word < std::min(chunks, total); ++word) {
      ChunkReport report;
      EvalTask task;
      task.phase = static_cast<uint32_t>(word / shape->chunks);
      task.chunk = static_cast<uint32_t>(word % shape->chunks);
      task.report = &report;
      EvalResult result{};
      REQUIRE(work->EvaluateChunk(task, {.floats = parameters}, kAlive, &result).ok());
      computed += report.was_done ? 0 : 1;
    }
    return computed;
  }

  NpyArray Array(const std::string& name) const {
    return test::OpenNpy(folder.path() + "/out/" + name);
  }

  test::TempFolder folder;
  TrainOptions options;
  UniqueFd scratch;
  mutable uint64_t total = 0;
};

// Rows of the logits that a prediction in one process makes.
std::vector<float> Expected(const Inference& inference) {
  const std::unique_ptr<TorchWork> work = inference.Trainer();
  std::vector<float> logits;
  const auto append = [&](std::span<const uint32_t> nodes, const float* rows) {
    logits.insert(logits.end(), rows, rows + nodes.size() * inference.options.model.out_dim);
    return Status::Ok();
  };
  REQUIRE(work->Predict(inference.Parameters(work.get()), inference.options.predicted_nodes, kAlive,
                        append)
              .ok());
  return logits;
}

TEST_CASE("predictions of a later Trainer go on from the journal, to the same rows") {
  const Partition data(6000, 4, 20, 7);
  for (const bool some : {false, true}) {
    const Inference inference(
        data, some ? std::vector<uint32_t>{3, 17, 4000, 5999} : std::vector<uint32_t>());
    const uint64_t early = inference.Run(4);
    CHECK(early == std::min<uint64_t>(4, inference.total));
    // The next one finds them done; a third one finds nothing to do.
    CHECK(inference.Run(UINT64_MAX) == inference.total - early);
    CHECK(inference.Run(UINT64_MAX) == 0);
    const NpyArray logits = inference.Array("logits.npy");
    const auto found = logits.values<float>();
    const std::vector<float> expected = Expected(inference);
    REQUIRE(found.size() == expected.size());
    for (size_t i = 0; i < expected.size(); ++i) CHECK(found[i] == expected[i]);
    const NpyArray classes = inference.Array("predictions.npy");
    const NpyArray shares = inference.Array("probabilities.npy");
    const uint64_t width = inference.options.model.out_dim;
    for (uint64_t r = 0; r < classes.size(); ++r) {
      const auto row = found.subspan(r * width, width);
      CHECK(classes.values<int64_t>()[r] == ArgMax(row));
      double sum = 0;
      for (const float share : shares.values<float>().subspan(r * width, width)) sum += share;
      CHECK(sum == doctest::Approx(1).epsilon(1e-5));
    }
    CHECK(std::filesystem::exists(inference.folder.path() + "/out/nodes.npy") == some);
  }
}

// All layers' rows of all nodes by plain loops: means of neighbours and the own row, each through
// its matrix.
std::vector<std::vector<double>> PlainRows(const Partition& data, const Inference& inference) {
  const std::unique_ptr<TorchWork> work = inference.Trainer();
  const std::vector<float> floats = inference.Parameters(work.get());
  const auto tensor = [&](uint32_t layer, const std::string& name) {
    for (const ParameterTensor& each : work->manifest().tensors) {
      if (each.name == "convs." + std::to_string(layer) + "." + name) return &floats[each.offset];
    }
    FAIL("no tensor ", name);
    return &floats[0];
  };
  std::vector<std::vector<double>> rows;
  std::vector<double> in(data.features.begin(), data.features.end());
  const auto nodes = static_cast<uint32_t>(data.labels.size());
  const TopologyView graph = data.graph.view();
  for (uint32_t layer = 0; layer < kLayers; ++layer) {
    const auto [from, to] = ShapeOf(inference.options.model, layer);
    const float* const neighbours = tensor(layer, "lin_l.weight");
    const float* const bias = tensor(layer, "lin_l.bias");
    const float* const own = tensor(layer, "lin_r.weight");
    std::vector<double> out;
    for (uint32_t v = 0; v < nodes; ++v) {
      std::vector<double> mean(from);
      for (uint64_t e = graph.indptr[v]; e < graph.indptr[v + 1]; ++e) {
        for (uint32_t c = 0; c < from; ++c) {
          mean[c] +=
              in[uint64_t{graph.indices[e]} * from + c] / static_cast<double>(graph.degree(v));
        }
      }
      for (uint32_t o = 0; o < to; ++o) {
        double sum = bias[o];
        for (uint32_t c = 0; c < from; ++c) {
          sum +=
              mean[c] * neighbours[o * from + c] + in[uint64_t{v} * from + c] * own[o * from + c];
        }
        out.push_back(layer + 1 < kLayers ? std::max(0.0, sum) : sum);
      }
    }
    rows.push_back(out);
    in = std::move(out);
  }
  return rows;
}

TEST_CASE("embeddings are the rows of their layer, whatever is written beside them") {
  const Partition data(3000, 4, 20, 7);
  const std::vector<uint32_t> some = {3, 17, 18, 1500, 2999};
  for (uint32_t layer = 0; layer < kLayers; ++layer) {
    for (const bool all : {true, false}) {
      for (const bool alone : {true, false}) {
        for (const bool sampled : {false, true}) {
          INFO(layer, all, alone, sampled);
          std::vector<OutputChoice> outputs = alone ? std::vector<OutputChoice>() : kPredicted;
          outputs.push_back({OutputKind::kEmbeddings, layer});
          Inference inference(data, all ? std::vector<uint32_t>() : some, outputs);
          if (sampled) {
            inference.options.eval_sampler.emplace();
            inference.options.eval_sampler->fanouts = std::vector<int32_t>(kLayers, -1);
          }
          CHECK(inference.Run(2) <= 2);
          inference.Run(UINT64_MAX);
          CHECK(inference.Run(UINT64_MAX) == 0);
          const std::vector<double> expected = PlainRows(data, inference)[layer];
          const uint32_t width = ShapeOf(inference.options.model, layer).out;
          const NpyArray rows = inference.Array("embeddings.npy");
          CHECK(rows.shape() == std::vector<uint64_t>{all ? 3000 : some.size(), width});
          const auto found = rows.values<float>();
          for (uint64_t i = 0; i < found.size(); ++i) {
            const uint64_t node = all ? i / width : some[i / width];
            CHECK(found[i] == doctest::Approx(expected[node * width + i % width]).epsilon(1e-4));
          }
          CHECK(std::filesystem::exists(inference.folder.path() + "/out/predictions.npy") ==
                !alone);
          // Nothing above the layer is computed for embeddings alone.
          if (alone && !sampled && layer == 0) CHECK(inference.total <= 2 * (3000 / 256 + 1));
        }
      }
    }
  }
}

TEST_CASE("embeddings of the last layer are the logits, and beyond it there are none") {
  const Partition data(600, 4, 20, 7);
  std::vector<OutputChoice> outputs = kPredicted;
  outputs.push_back({OutputKind::kEmbeddings, kLayers - 1});
  const Inference inference(data, {}, outputs);
  inference.Run(UINT64_MAX);
  const NpyArray logits = inference.Array("logits.npy");
  const NpyArray rows = inference.Array("embeddings.npy");
  CHECK(std::ranges::equal(logits.values<float>(), rows.values<float>()));
  Inference beyond(data, {}, {{OutputKind::kEmbeddings, kLayers}});
  const auto refused = TorchWork::Create(beyond.options);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.status().code() == Code::kInvalidArgument);
  CHECK(refused.status().message() == "rows of layer 4 of a model that has 3");
}

TEST_CASE("a number that is not finite ends an inference") {
  test::TempFolder folder;
  std::filesystem::create_directories(folder.path() + "/out");
  const std::vector<uint32_t> nodes = {0, 1};
  const PredictionPlace place{folder.path(), {{OutputKind::kPredictions, 0}}};
  const uint32_t widths[] = {2};
  auto outputs = OutputsOf(place.outputs, ClassesOfNodes(), widths);
  REQUIRE(outputs.ok());
  auto files = PredictionFiles::Open(place, {nodes, true}, std::move(*outputs));
  REQUIRE(files.ok());
  const Status status = files->Write(0, 0, std::vector<float>{1, 2, 3, NAN});
  CHECK(status.code() == Code::kNumericDivergence);
  CHECK(status.message().find("in row 1 is not finite") != std::string::npos);
  CHECK(!files->Done(0)->has_value());
  REQUIRE(files->Finish(0, 2, -1).ok());
  CHECK(*files->Done(0) == 2);
}

TEST_CASE("rows to predict are in the order of their nodes") {
  const std::vector<uint32_t> nodes_of_rows = {9, 2, 7, 5, 0, 4};
  RowsToPredict split;
  split.begin = 1;
  split.end = 5;
  const auto some = RowTargets::Of(split, nodes_of_rows);
  REQUIRE(some.ok());
  CHECK(some->nodes == std::vector<uint32_t>{0, 2, 5, 7});
  CHECK(some->rows == std::vector<uint32_t>{4, 1, 3, 2});
  CHECK(!some->are_all);
  const auto named = RowTargets::OfNodes(std::vector<uint32_t>{2, 9}, nodes_of_rows);
  REQUIRE(named.ok());
  CHECK(named->rows == std::vector<uint32_t>{1, 0});
  CHECK(RowTargets::OfNodes(std::vector<uint32_t>{3}, nodes_of_rows).status().code() ==
        Code::kInvalidArgument);
  split.end = 7;
  CHECK(!RowTargets::Of(split, nodes_of_rows).ok());
}

}  // namespace
}  // namespace gnnd
