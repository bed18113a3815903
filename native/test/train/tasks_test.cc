#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "partition.h"
#include "test/support/record_builder.h"
#include "train/tasks/task.h"
#include "train/work/torch_work.h"
#include "training_loop.h"

namespace gnnd {
namespace {

using test::EvaluateNodes;
using test::LogitsOf;
using test::Loop;
using test::Partition;
using test::TestRecord;

constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

// A partition whose groups are to be learnt as labels: a node has that of its group, and every
// fourth one that of the next group as well; some are not known.
struct Labelled : Partition {
  Labelled() : Partition(300, 4, 8, 6) {
    for (uint32_t v = 0; v < labels.size(); ++v) {
      for (uint32_t c = 0; c < 4; ++c) {
        const bool has = v % 4 == c || (v % 16 < 4 && (v + 1) % 4 == c);
        bits.push_back(v % 7 == c ? kUnknownLabel : static_cast<uint8_t>(has));
        // The number of a group, in each direction; half of them known.
        values.push_back((v + c) % 2 == 0 ? kUnknown
                                          : static_cast<float>(v % 4) - static_cast<float>(c));
      }
    }
  }

  TrainOptions As(Task task) const {
    TrainOptions options = Options(ModelType::kGraphSage);
    options.targets.task = task;
    options.targets.width = 4;
    options.targets.labels = {};
    if (task == Task::kMultiLabel) options.targets.label_bits = bits;
    if (task == Task::kRegression) options.targets.values = values;
    return options;
  }

  std::vector<uint8_t> bits;
  std::vector<float> values;
};

void Train(Loop* loop, const Labelled& data, uint32_t epochs) {
  for (uint32_t epoch = 0; epoch < epochs; ++epoch) {
    loop->Step(TestRecord(data.graph, {{17, epoch, 0}, data.train, {-1, -1}, false}));
  }
}

EvalResult Evaluated(Loop* loop, EvalNodes nodes) {
  const auto result =
      EvaluateNodes(loop->work(), nodes, {.floats = loop->parameters()}, [] { return true; });
  REQUIRE(result.ok());
  return *result;
}

double MetricOf(Loop* loop, const EvalResult& result, Metric metric) {
  return loop->work().Judge(result, {}).metrics[static_cast<size_t>(metric)];
}

std::vector<uint32_t> Nodes(const std::vector<int64_t>& given) {
  return {given.begin(), given.end()};
}

}  // namespace

TEST_CASE("GraphSAGE learns labels of which a node has several, and counts them as they are") {
  const Labelled data;
  Loop loop(data.As(Task::kMultiLabel));
  Train(&loop, data, 120);
  const EvalResult result = Evaluated(&loop, EvalNodes::kTest);
  // 0.89 is to be had: nothing tells which nodes have a second label.
  CHECK(MetricOf(&loop, result, Metric::kMicroF1) > 0.8);
  CHECK(MetricOf(&loop, result, Metric::kMacroF1) > 0.8);

  const std::vector<uint32_t> nodes = Nodes(data.test);
  const std::vector<float> logits = LogitsOf(loop.work(), loop.parameters(), nodes);
  std::vector<ClassCounts> counts(4);
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (uint32_t c = 0; c < 4; ++c) {
      const uint8_t bit = data.bits[nodes[i] * 4 + c];
      if (bit == kUnknownLabel) continue;
      const bool predicted = logits[i * 4 + c] > 0;
      counts[c].predicted += predicted;
      counts[c].actual += bit;
      counts[c].hits += predicted && bit == 1;
    }
  }
  CHECK(result.sums.items == nodes.size());
  const std::span<const ClassCounts> labels = ClassesIn(std::span(result.counts));
  for (uint32_t c = 0; c < 4; ++c) {
    CHECK(labels[c].predicted == counts[c].predicted);
    CHECK(labels[c].actual == counts[c].actual);
    CHECK(labels[c].hits == counts[c].hits);
  }
}

TEST_CASE("GraphSAGE regresses on several numbers, and its errors are those of its outputs") {
  const Labelled data;
  TrainOptions options = data.As(Task::kRegression);
  Loop loop(options);
  const double before = MetricOf(&loop, Evaluated(&loop, EvalNodes::kTest), Metric::kMae);
  Train(&loop, data, 150);
  const EvalResult result = Evaluated(&loop, EvalNodes::kValidation);
  CHECK(MetricOf(&loop, result, Metric::kMae) < 0.5 * before);
  const std::vector<uint32_t> nodes = Nodes(data.val);
  const std::vector<float> outputs = LogitsOf(loop.work(), loop.parameters(), nodes);
  double absolute = 0;
  double squared = 0;
  double loss = 0;
  uint64_t known = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    double of_node = 0;
    for (uint32_t t = 0; t < 4; ++t) {
      const float target = data.values[nodes[i] * 4 + t];
      if (std::isnan(target)) continue;
      const double error = double{outputs[i * 4 + t]} - double{target};
      absolute += std::abs(error);
      squared += error * error;
      of_node += error * error / 2;  // two of a node's four are known
      ++known;
    }
    loss += of_node;
  }
  const auto count = static_cast<double>(known);
  CHECK(MetricOf(&loop, result, Metric::kMae) == doctest::Approx(absolute / count));
  CHECK(MetricOf(&loop, result, Metric::kRmse) == doctest::Approx(std::sqrt(squared / count)));
  CHECK(result.sums.loss == doctest::Approx(loss));
}

// The scores and outcomes that nodes with these outputs leave, node by node.
struct Scored {
  std::vector<float> scores;
  std::vector<Outcome> outcomes;
};
Scored ScoresOf(const NodeTargets& targets, const std::vector<std::vector<float>>& outputs) {
  const uint64_t columns = TaskOf(targets.task).ScoresOf(targets);
  std::vector<std::byte> kept(
      columns * (ScoreTable::kColumnBytes + outputs.size() * ScoreTable::kEntryBytes));
  EvalResult result;
  EvalCount count(targets, false, kept, &result);
  for (uint64_t node = 0; node < outputs.size(); ++node) count.Add(node, node, outputs[node]);
  CHECK(result.sums.items == outputs.size());
  const ScoreTable table = ScoreTable::In(kept, columns);
  return {{table.scores.begin(), table.scores.end()},
          {table.outcomes.begin(), table.outcomes.end()}};
}

TEST_CASE("scores of classes order nodes by their probabilities, of labels by their logits") {
  const std::vector<int32_t> classes = {1, 0};
  NodeTargets targets;
  targets.labels = classes;
  targets.width = 2;
  targets.ranks = true;
  const Scored two = ScoresOf(targets, {{1, 3}, {-1, -2}});
  CHECK(two.scores == std::vector<float>{2, -1});
  CHECK((two.outcomes == std::vector<Outcome>{Outcome::kPositive, Outcome::kNegative}));

  targets.width = 3;
  const Scored three = ScoresOf(targets, {{100, 101, 99}});
  const double all = std::exp(-1.0) + 1 + std::exp(-2.0);
  REQUIRE(three.scores.size() == 3);
  for (size_t c = 0; c < 3; ++c) {
    const double share = std::exp(std::vector<double>{-1, 0, -2}[c]) / all;
    CHECK(std::exp(static_cast<double>(three.scores[c])) == doctest::Approx(share));
    CHECK((three.outcomes[c] == Outcome::kPositive) == (c == 1));
  }

  const std::vector<uint8_t> bits = {1, kUnknownLabel, 0};
  targets.task = Task::kMultiLabel;
  targets.label_bits = bits;
  const Scored labels = ScoresOf(targets, {{5, 6, 7}});
  CHECK(labels.scores == std::vector<float>{5, 6, 7});
  CHECK((labels.outcomes ==
         std::vector<Outcome>{Outcome::kPositive, Outcome::kUnknown, Outcome::kNegative}));
}

TEST_CASE("weights of classes multiply losses and gradients, and weights of 1 change no bit") {
  const Labelled data;
  const TestRecord record(data.graph, {{17, 0, 0}, data.train, {-1, -1}, false});
  const auto train = [&](std::span<const float> weights) {
    TrainOptions options = data.Options(ModelType::kGraphSage);
    options.targets.weights = weights;
    Loop loop(options);
    const BatchReport report = loop.Step(record);
    return std::pair(report.sums.loss, loop.gradient());
  };
  const std::vector<float> ones(4, 1.0F);
  const std::vector<float> twos(4, 2.0F);
  const auto [loss, gradient] = train({});
  CHECK(train(ones).first == loss);
  CHECK(test::SameBits(train(ones).second, gradient));
  const auto [doubled, twice] = train(twos);
  CHECK(doubled == doctest::Approx(2 * loss));
  double off = 0;
  for (size_t i = 0; i < gradient.size(); ++i) {
    off = std::max(off, std::abs(double{twice[i]} - 2 * double{gradient[i]}));
  }
  CHECK(off < 1e-5);
  // With these weights, only the nodes of class 0 matter.
  const std::vector<float> first = {1, 1e-6F, 1e-6F, 1e-6F};
  CHECK(train(first).first < 0.5 * loss);
}

TEST_CASE("balanced weights give classes equal shares, and labels as much as nodes without them") {
  const std::vector<int32_t> labels = {0, 0, 0, 1, 1, 2, 0, -1};
  NodeTargets classes;
  classes.width = 4;
  classes.labels = labels;
  const std::vector<int64_t> train = {0, 1, 2, 3, 4, 5};
  const std::vector<float> weights = WeightsOf({.balanced = true}, classes, train);
  // The last class has no training node: it takes no share.
  CHECK(weights == std::vector<float>{2.0F / 3, 1.0F, 2.0F, 1.0F});
  CHECK(WeightsOf({.weights = {1, 2}}, classes, train) == std::vector<float>{1, 2});
  const std::vector<uint8_t> bits = {1, 0, 1, 255, 0, 0, 0, 255};
  NodeTargets several;
  several.task = Task::kMultiLabel;
  several.width = 2;
  several.label_bits = bits;
  const std::vector<int64_t> all = {0, 1, 2, 3};
  CHECK(WeightsOf({.balanced = true}, several, all) == std::vector<float>{1.0F, 1.0F});
  const std::vector<int64_t> some = {0, 2, 3};
  CHECK(WeightsOf({.balanced = true}, several, some) == std::vector<float>{2.0F, 1.0F});
}

TEST_CASE("the mean of balanced weights over the training nodes is 1, whatever classes they lack") {
  for (const uint32_t first : {0U, 1U, 10U, 100U}) {
    for (const uint32_t step : {1U, 3U, 100U}) {
      std::vector<int32_t> labels;
      for (int32_t node = 0; node < 60; ++node) {
        labels.push_back(static_cast<int32_t>(first + step * static_cast<uint32_t>(node % 7 / 3)));
      }
      labels[59] = -1;
      NodeTargets classes;
      // Tests a class that no node has, too.
      classes.width = first + 3 * step + 1;
      classes.labels = labels;
      std::vector<int64_t> train(60);
      std::iota(train.begin(), train.end(), 0);
      const std::vector<float> weights = WeightsOf({.balanced = true}, classes, train);
      double sum = 0;
      double shares[3] = {0, 0, 0};
      for (uint32_t node = 0; node < 59; ++node) {
        const auto label = static_cast<uint32_t>(labels[node]);
        sum += double{weights[label]};
        shares[(label - first) / step] += double{weights[label]};
      }
      CHECK(sum / 59 == doctest::Approx(1));
      CHECK(shares[0] == doctest::Approx(shares[1]));
      CHECK(shares[0] == doctest::Approx(shares[2]));
      CHECK(weights.back() == 1.0F);
    }
  }
}

TEST_CASE("a node without a known target is no training node, and is named") {
  Labelled data;
  for (uint32_t c = 0; c < 4; ++c) {
    data.bits[data.train[5] * 4 + c] = kUnknownLabel;
    data.values[static_cast<uint64_t>(data.val[2]) * 4 + c] = kUnknown;
  }
  Loop loop(data.As(Task::kMultiLabel));
  const TestRecord record(data.graph, {{17, 0, 0}, data.train, {-1, -1}, false});
  ExtractReport report;
  const Status extracted = loop.work().Extract(record.view(), 0, &report);
  CHECK(extracted.code() == Code::kDatasetCorrupt);
  CHECK(extracted.message().find(std::to_string(data.train[5])) != std::string::npos);
  const auto made = TorchWork::Create(data.As(Task::kRegression));
  REQUIRE_FALSE(made.ok());
  CHECK(made.status().message().find("no target that is known") != std::string::npos);
}

}  // namespace gnnd
