#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "core/metric/metric.h"
#include "core/metric/ranking.h"
#include "train/tasks/task.h"

namespace gnnd {
namespace {

using doctest::Approx;

EvalResult Classified(const std::vector<uint32_t>& labels, const std::vector<uint32_t>& predicted,
                      uint32_t classes) {
  EvalResult result;
  result.counts.resize(classes * kCountsPerClass);
  const std::span<ClassCounts> counts = ClassesIn(std::span(result.counts));
  for (size_t i = 0; i < labels.size(); ++i) {
    ++result.sums.items;
    ++counts[labels[i]].actual;
    ++counts[predicted[i]].predicted;
    if (labels[i] != predicted[i]) continue;
    ++result.sums.counts[kCorrect];
    ++counts[labels[i]].hits;
  }
  return result;
}

EvalResult Labelled(std::vector<uint64_t> counts) {
  EvalResult result;
  result.sums.items = 3;
  result.counts = std::move(counts);
  return result;
}

// Four targets of numbers with such errors in all.
EvalResult Regressed(double absolute, double squared) {
  const std::vector<float> known = {0, 0, 0, 0};
  NodeTargets targets;
  targets.task = Task::kRegression;
  targets.width = 4;
  targets.values = known;
  EvalResult result;
  EvalCount count(targets, false, {}, &result);
  count.Add(0, 0, std::vector<float>(4, 1.0F));
  // In place of what ones come to.
  result.sums.totals[0] = absolute;
  result.sums.totals[1] = squared;
  return result;
}

NodeTargets TargetsOf(Task task, Metric decides = Metric::kAccuracy) {
  NodeTargets targets;
  targets.task = task;
  targets.decides = decides;
  return targets;
}

double MetricOf(Task task, Metric metric, const EvalResult& whole) {
  return JudgementOf(TargetsOf(task), whole, {}).metrics[static_cast<size_t>(metric)];
}

bool Exceeds(Task task, Metric decides, const EvalResult& better, const EvalResult& worse,
             double margin = 0) {
  const auto quality = [&](const EvalResult& whole) {
    return JudgementOf(TargetsOf(task, decides), whole, {}).quality;
  };
  CHECK_FALSE(gnnd::Exceeds(quality(better), quality(better)));
  CHECK_FALSE(gnnd::Exceeds(quality(worse), quality(better)));
  return gnnd::Exceeds(quality(better), quality(worse), margin);
}

}  // namespace

// The examples of sklearn.metrics.f1_score's documentation (scikit-learn 1.5).
TEST_CASE("F1 of classes and of labels is scikit-learn's") {
  const EvalResult classes = Classified({0, 1, 2, 0, 1, 2}, {0, 2, 1, 0, 0, 1}, 5);
  constexpr Task kClasses = Task::kClassification;
  CHECK(MetricOf(kClasses, Metric::kAccuracy, classes) == Approx(1.0 / 3));
  CHECK(MetricOf(kClasses, Metric::kMicroF1, classes) == Approx(1.0 / 3));
  // The mean is of three of the five classes.
  CHECK(MetricOf(kClasses, Metric::kMacroF1, classes) == Approx(0.26666666666666666));
  CHECK(std::isnan(MetricOf(kClasses, Metric::kMae, classes)));
  CHECK(std::isnan(MetricOf(kClasses, Metric::kRocAuc, classes)));

  const EvalResult labels = Labelled({1, 2, 1, 2, 2, 2, 1, 1, 2});  // F1 2/3, 1, 2/3
  constexpr Task kLabels = Task::kMultiLabel;
  CHECK(MetricOf(kLabels, Metric::kMacroF1, labels) == Approx((2.0 / 3 + 1 + 2.0 / 3) / 3));
  CHECK(MetricOf(kLabels, Metric::kMicroF1, labels) == Approx(0.8));
  CHECK(std::isnan(MetricOf(kLabels, Metric::kAccuracy, labels)));
  // A label that is nowhere counts as 0.
  const EvalResult more = Labelled({1, 2, 1, 2, 2, 2, 1, 1, 2, 0, 0, 0});
  CHECK(MetricOf(kLabels, Metric::kMacroF1, more) == Approx((7.0 / 3) / 4));
}

TEST_CASE("errors are means over known targets") {
  const EvalResult result = Regressed(6, 16);
  CHECK(MetricOf(Task::kRegression, Metric::kMae, result) == 1.5);
  CHECK(MetricOf(Task::kRegression, Metric::kRmse, result) == 2);
  CHECK(std::isnan(MetricOf(Task::kRegression, Metric::kMicroF1, result)));
}

TEST_CASE("no node that was evaluated has no metric") {
  for (const Task task : {Task::kClassification, Task::kMultiLabel, Task::kRegression}) {
    const Judgement none = JudgementOf(TargetsOf(task), EvalResult(), {});
    CHECK(std::ranges::all_of(std::span(none.metrics).first(kNumMetrics),
                              [](double metric) { return std::isnan(metric); }));
  }
}

TEST_CASE("any metric of a task decides which epoch is better; one that is not there, none") {
  CHECK(Exceeds(Task::kRegression, Metric::kMae, Regressed(4, 9), Regressed(5, 9)));
  CHECK(Exceeds(Task::kRegression, Metric::kMae, Regressed(4, 9), Regressed(5, 9), 0.24));
  CHECK_FALSE(Exceeds(Task::kRegression, Metric::kMae, Regressed(4, 9), Regressed(5, 9), 0.26));
  CHECK(Exceeds(Task::kRegression, Metric::kRmse, Regressed(9, 4), Regressed(9, 5)));
  CHECK(Exceeds(Task::kMultiLabel, Metric::kMicroF1, Labelled({3, 4, 4}), Labelled({2, 2, 4})));
  // Nothing is to be found, and nothing is found.
  CHECK(Exceeds(Task::kMultiLabel, Metric::kMicroF1, Labelled({3, 4, 4}), Labelled({0, 0, 0})));
  CHECK(Exceeds(Task::kMultiLabel, Metric::kMacroF1, Labelled({1, 1, 1, 1, 2, 1}),
                Labelled({1, 1, 1, 0, 2, 1})));
  const EvalResult two = Classified({0, 1, 1}, {0, 1, 0}, 2);
  const EvalResult one = Classified({0, 1, 1}, {0, 0, 0}, 2);
  CHECK(Exceeds(Task::kClassification, Metric::kAccuracy, two, one));
  CHECK(Exceeds(Task::kClassification, Metric::kMicroF1, two, one));
  CHECK_FALSE(Exceeds(Task::kClassification, Metric::kRocAuc, two, one));
  CHECK_FALSE(Exceeds(Task::kMultiLabel, Metric::kMae, two, one));
}

TEST_CASE("nodes that are ranked add the means over columns, which may decide, too") {
  const std::vector<int32_t> labels = {0, 1, 1, 0};
  NodeTargets targets = TargetsOf(Task::kClassification, Metric::kRocAuc);
  targets.labels = labels;
  targets.width = 2;
  targets.ranks = true;
  const auto judged = [&targets](const std::vector<float>& scores) {
    std::vector<std::byte> kept(ScoreTable::kColumnBytes + 4 * ScoreTable::kEntryBytes);
    EvalResult result;
    EvalCount count(targets, false, kept, &result);
    for (uint64_t node = 0; node < 4; ++node) {
      count.Add(node, node, std::vector<float>{0, scores[node]});
    }
    REQUIRE(ReduceScores(targets, {kept, 4, 0, 1}, [] { return true; }).ok());
    return JudgementOf(targets, result, kept);
  };
  const Judgement good = judged({-1, 2, 3, 1});
  const Judgement fair = judged({-1, 0.5F, 3, 1});
  CHECK(good.metrics[static_cast<size_t>(Metric::kRocAuc)] == 1);
  CHECK(fair.metrics[static_cast<size_t>(Metric::kRocAuc)] == 0.75);
  CHECK(fair.metrics[static_cast<size_t>(Metric::kAveragePrecision)] == Approx((1 + 2.0 / 3) / 2));
  CHECK(gnnd::Exceeds(good.quality, fair.quality));
}

TEST_CASE("results of chunks add up to that of all nodes, however they are cut") {
  std::mt19937 random(5);
  std::vector<uint32_t> labels(500);
  std::vector<uint32_t> predicted(500);
  for (size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<uint32_t>(random() % 7);
    predicted[i] = random() % 2 == 0 ? labels[i] : static_cast<uint32_t>(random() % 7);
  }
  const EvalResult whole = Classified(labels, predicted, 7);
  EvalResult sum;
  for (size_t begin = 0; begin < labels.size();) {
    const size_t end = std::min(labels.size(), begin + 1 + random() % 90);
    const auto part = [&](const std::vector<uint32_t>& of) {
      return std::vector<uint32_t>(of.begin() + static_cast<std::ptrdiff_t>(begin),
                                   of.begin() + static_cast<std::ptrdiff_t>(end));
    };
    const EvalResult one = Classified(part(labels), part(predicted), 7);
    sum.Add(one.sums, one.counts);
    begin = end;
  }
  for (const Metric metric : {Metric::kAccuracy, Metric::kMicroF1, Metric::kMacroF1}) {
    CHECK(MetricOf(Task::kClassification, metric, sum) ==
          MetricOf(Task::kClassification, metric, whole));
  }
}

}  // namespace gnnd
