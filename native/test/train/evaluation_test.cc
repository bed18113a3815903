#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/executor/eval_scratch.h"
#include "evaluate.h"
#include "partition.h"
#include "test/support/block_types.h"
#include "train/work/torch_work.h"
#include "training_loop.h"

// Exact and sampled evaluation: what comes out, and how many rows are computed for it.

namespace gnnd {
namespace {

using test::EvalReport;
using Evaluated = test::Loop;  // with its initial parameters
using test::Partition;

// Logits of every node by the models' formulas, in float64 over adjacency lists.
std::vector<double> NaiveLogits(const Partition& data, const TrainOptions& options,
                                const ParameterManifest& manifest,
                                const std::vector<float>& parameters) {
  const bool gcn = options.model.type == ModelType::kGcn;
  const auto n = static_cast<uint32_t>(data.labels.size());
  const TopologyView topology = data.graph.view();
  std::vector<double> h(data.features.begin(), data.features.end());
  uint32_t in = options.model.in_dim;
  const uint32_t per_layer = gcn ? 2 : 3;
  for (uint32_t layer = 0; layer < options.model.num_layers; ++layer) {
    const ParameterTensor* tensors = &manifest.tensors[layer * per_layer];
    const float* bias = parameters.data() + tensors[gcn ? 0 : 1].offset;
    const float* weight = parameters.data() + tensors[gcn ? 1 : 0].offset;
    const float* self_weight = gcn ? nullptr : parameters.data() + tensors[2].offset;
    const uint32_t out = tensors[gcn ? 1 : 0].rows;
    std::vector<double> next(uint64_t{n} * out);
    for (uint32_t v = 0; v < n; ++v) {
      std::vector<double> sum(in);
      const auto degree = static_cast<double>(topology.degree(v));
      for (uint64_t e = topology.indptr[v]; e < topology.indptr[v + 1]; ++e) {
        const uint32_t u = topology.indices[e];
        const auto other = static_cast<double>(topology.degree(u));
        const double w = gcn ? 1 / std::sqrt((degree + 1) * (other + 1)) : 1 / degree;
        for (uint32_t c = 0; c < in; ++c) sum[c] += w * h[uint64_t{u} * in + c];
      }
      const double* own = &h[uint64_t{v} * in];
      if (gcn) {
        for (uint32_t c = 0; c < in; ++c) sum[c] += own[c] / (degree + 1);
      }
      for (uint32_t o = 0; o < out; ++o) {
        double value = static_cast<double>(bias[o]);
        for (uint32_t c = 0; c < in; ++c) {
          value += sum[c] * static_cast<double>(weight[o * in + c]);
          if (!gcn) value += own[c] * static_cast<double>(self_weight[o * in + c]);
        }
        const bool relu = layer + 1 < options.model.num_layers;
        next[uint64_t{v} * out + o] = relu ? std::max(value, 0.0) : value;
      }
    }
    h = std::move(next);
    in = out;
  }
  return h;
}

EvalReport NaiveEvaluation(const Partition& data, const std::vector<double>& logits) {
  EvalReport report;
  const auto right = [&](int64_t node) {
    const double* row = &logits[static_cast<uint64_t>(node) * 4];
    return std::max_element(row, row + 4) - row == data.labels[static_cast<uint64_t>(node)];
  };
  for (const int64_t node : data.val) {
    const double* row = &logits[static_cast<uint64_t>(node) * 4];
    double sum = 0;
    for (uint32_t c = 0; c < 4; ++c) sum += std::exp(row[c]);
    report.val_loss_sum += std::log(sum) - row[data.labels[static_cast<uint64_t>(node)]];
    ++report.val_nodes;
    report.val_correct += right(node);
  }
  for (const int64_t node : data.test) {
    ++report.test_nodes;
    report.test_correct += right(node);
  }
  return report;
}

TEST_CASE("exact evaluation equals the models' formulas, in memory and in a file") {
  const Partition data(200, 4, 9, 5);
  for (const ModelType type : {ModelType::kGraphSage, ModelType::kGcn}) {
    for (uint32_t layers = 1; layers <= 3; ++layers) {
      for (const std::string folder : {"", "/tmp"}) {
        INFO("type ", static_cast<uint32_t>(type), " layers ", layers, " folder ", folder);
        TrainOptions options = data.Options(type);
        options.model.num_layers = layers;
        options.model.dropout = 0.5F;  // must not matter
        options.eval_place = {-1, 1, folder};
        Evaluated loop(options);
        const EvalReport expected = NaiveEvaluation(
            data, NaiveLogits(data, options, loop.work().manifest(), loop.parameters()));
        const EvalReport first = loop.Evaluate();
        CHECK(first.val_nodes == expected.val_nodes);
        CHECK(first.test_nodes == expected.test_nodes);
        CHECK(first.val_correct == expected.val_correct);
        CHECK(first.test_correct == expected.test_correct);
        CHECK(first.val_loss_sum == doctest::Approx(expected.val_loss_sum).epsilon(1e-5));
        CHECK(loop.Evaluate() == first);
      }
    }
  }
}

// The rows of exact evaluation by its definition: of each hidden layer those that the layers above
// read, once.
uint64_t ReachOf(const Partition& data, uint32_t layers, const std::vector<int64_t>& targets) {
  const TopologyView topology = data.graph.view();
  std::set<uint32_t> reach(targets.begin(), targets.end());
  uint64_t rows = reach.size();
  for (uint32_t layer = 1; layer < layers; ++layer) {
    const std::vector<uint32_t> above(reach.begin(), reach.end());
    for (const uint32_t v : above) {
      for (uint64_t e = topology.indptr[v]; e < topology.indptr[v + 1]; ++e) {
        reach.insert(topology.indices[e]);
      }
    }
    rows += reach.size();
  }
  return rows;
}

TEST_CASE("exact evaluation computes each row that the targets reach once, also in a file") {
  Partition data(20'000, 4, 4, 5);
  data.val.resize(40);
  data.test.resize(700);
  for (uint32_t layers = 1; layers <= 3; ++layers) {
    for (const std::string folder : {"", "/tmp"}) {
      TrainOptions options = data.Options(ModelType::kGraphSage);
      options.model.num_layers = layers;
      options.model.hidden_dim = 4;  // as wide as the input, so that nothing is transformed first
      options.eval_place = {-1, 1, folder};
      Evaluated loop(options);
      const uint64_t reach = ReachOf(data, layers, data.val) + ReachOf(data, layers, data.test);
      CHECK(loop.Evaluate().rows == reach);
      CHECK(loop.Evaluate().rows == reach);
    }
  }
}

TEST_CASE("a last layer that is narrower transforms first, each row that it reads once") {
  Partition data(20'000, 4, 4, 5);
  data.val.clear();
  TrainOptions options = data.Options(ModelType::kGraphSage);
  options.model.hidden_dim = 64;
  options.model.num_layers = 2;
  Evaluated loop(options);
  // The rows of the hidden layer that the targets read are transformed, and then aggregated.
  const uint64_t hidden = ReachOf(data, 2, data.test) - data.test.size();
  CHECK(loop.Evaluate().rows == 2 * hidden + data.test.size());
}

TEST_CASE("evaluation gives up when it is told to") {
  const Partition data(100, 4, 8, 6);
  Evaluated loop(data.Options(ModelType::kGraphSage));
  EvalReport report;
  const Status status =
      test::Evaluate(loop.work(), loop.parameters(), [] { return false; }, &report);
  CHECK(status.code() == Code::kAborted);
  CHECK(loop.Evaluate().val_nodes == data.val.size());  // and can be asked again
}

TEST_CASE("two Trainers that share a scratch and its chunks come to the bits of one") {
  const Partition data(6000, 4, 40, 7);
  for (const ModelType type : test::BlockTypes()) {
    for (const bool changes : {false, true}) {
      TrainOptions options = data.Options(type);
      options.model.num_layers = 3;
      if (IsAttention(type)) options.model.heads = 4;
      Evaluated alone(options);
      const EvalLayout layout = EvalLayout::Of(options.model, data.labels.size());
      const uint64_t kept = changes ? 0 : layout.kept_bytes;
      const auto scratch = EvalScratch::Create(layout.total_bytes + kept, changes ? "/tmp" : "");
      REQUIRE(scratch.ok());
      options.eval_place.fd = scratch->get();
      Evaluated both[] = {Evaluated(options), Evaluated(options)};
      const auto alive = [] { return true; };
      EvalResult sum{};
      EvalTask task;
      const auto shape = both[0].work().PlanEvaluation(EvalNodes::kValidation, alive);
      REQUIRE(shape.ok());
      REQUIRE(both[1].work().PlanEvaluation(EvalNodes::kValidation, alive).ok());
      CHECK(shape->chunks > 2);
      for (task.phase = 0; task.phase < shape->phases; ++task.phase) {
        // Backwards, and every third one a second time by the other, as after a death.
        for (uint32_t left = shape->chunks; left-- > 0;) {
          task.chunk = left;
          for (uint32_t again = 0; again < (left % 3 == 0 ? 2U : 1U); ++again) {
            EvalResult one{};
            TorchWork& work = both[(left + again) % 2].work();
            REQUIRE(work.EvaluateChunk(task, {.floats = both[0].parameters()}, alive, &one).ok());
            if (again > 0) continue;
            sum.sums.Add(one.sums);
          }
        }
      }
      const EvalReport expected = alone.Evaluate();
      CHECK(sum.sums.loss == doctest::Approx(expected.val_loss_sum).epsilon(1e-12));
      CHECK(sum.sums.counts[kCorrect] == expected.val_correct);
    }
  }
}

TEST_CASE("sums of features are kept from one evaluation to the next, where there is room") {
  for (const bool keeps : {true, false}) {
    CAPTURE(keeps);
    Partition data(3000, 4, 40, 8);
    TrainOptions options = data.Options(ModelType::kGcn);
    options.model.hidden_dim = 64;  // no narrower than the features: they are summed first
    const EvalLayout layout = EvalLayout::Of(options.model, data.labels.size());
    const auto scratch =
        EvalScratch::Create(layout.total_bytes + (keeps ? layout.kept_bytes : 0), "");
    REQUIRE(scratch.ok());
    options.eval_place.fd = scratch->get();
    Evaluated loop(options);
    const EvalReport first = loop.Evaluate();
    for (float& feature : data.features) feature *= 3;
    const EvalReport second = loop.Evaluate();
    CHECK((second.val_loss_sum == first.val_loss_sum) == keeps);
  }
}

TEST_CASE("sampled evaluation with all neighbours comes to what exact evaluation does") {
  const Partition data(700, 4, 9, 5);
  for (const ModelType type : {ModelType::kGraphSage, ModelType::kGcn, ModelType::kPinSage}) {
    TrainOptions options = data.Options(type);
    options.model.dropout = options.model.input_dropout = 0.5F;  // must not matter
    Evaluated exact(options);
    SamplerOptions sampler;
    sampler.fanouts = {-1, -1};
    if (type == ModelType::kGcn) sampler.weights = EdgeWeights::kGcn;
    options.eval_sampler = sampler;
    Evaluated sampled(options);
    const EvalReport a = exact.Evaluate();
    const EvalReport b = sampled.Evaluate();
    CHECK(b.val_nodes == a.val_nodes);
    CHECK(b.val_correct == a.val_correct);
    CHECK(b.test_correct == a.test_correct);
    CHECK(b.val_loss_sum == doctest::Approx(a.val_loss_sum).epsilon(1e-5));
    CHECK(b.rows == data.val.size() + data.test.size());
    // Fewer neighbours: another estimate, the same each time.
    options.eval_sampler->fanouts = {2, 1};
    Evaluated few(options);
    CHECK(few.Evaluate().val_loss_sum != b.val_loss_sum);
    CHECK(few.Evaluate() == Evaluated(options).Evaluate());
  }
}

}  // namespace
}  // namespace gnnd
