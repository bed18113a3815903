#include "core/ledger/eval_result.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

namespace gnnd {
namespace {

using doctest::Approx;

EvalResult Classified(const std::vector<uint32_t>& labels, const std::vector<uint32_t>& predicted,
                      uint32_t classes) {
  EvalResult result{};
  result.classes.resize(classes);
  for (size_t i = 0; i < labels.size(); ++i) {
    ++result.nodes;
    ++result.classes[labels[i]].actual;
    ++result.classes[predicted[i]].predicted;
    if (labels[i] != predicted[i]) continue;
    ++result.correct;
    ++result.classes[labels[i]].hits;
  }
  return result;
}

}  // namespace

// The examples of sklearn.metrics.f1_score's documentation (scikit-learn 1.5).
TEST_CASE("F1 of classes and of labels is scikit-learn's") {
  const EvalResult classes = Classified({0, 1, 2, 0, 1, 2}, {0, 2, 1, 0, 0, 1}, 5);
  const Metrics of_classes = MetricsOf(Task::kClassification, classes);
  CHECK(of_classes[Metric::kAccuracy] == Approx(1.0 / 3));
  CHECK(of_classes[Metric::kMicroF1] == Approx(1.0 / 3));
  CHECK(of_classes[Metric::kMacroF1] == Approx(0.26666666666666666));  // of three of five classes
  CHECK(std::isnan(of_classes[Metric::kMae]));

  EvalResult labels{};
  labels.nodes = 3;
  labels.classes = {{1, 2, 1}, {2, 2, 2}, {1, 1, 2}};  // F1 2/3, 1, 2/3
  const Metrics of_labels = MetricsOf(Task::kMultiLabel, labels);
  CHECK(of_labels[Metric::kMacroF1] == Approx((2.0 / 3 + 1 + 2.0 / 3) / 3));
  CHECK(of_labels[Metric::kMicroF1] == Approx(0.8));
  CHECK(std::isnan(of_labels[Metric::kAccuracy]));
  labels.classes.push_back({0, 0, 0});  // counts as 0
  CHECK(MetricsOf(Task::kMultiLabel, labels)[Metric::kMacroF1] == Approx((7.0 / 3) / 4));
}

TEST_CASE("errors are means over known targets") {
  EvalResult result{};
  result.nodes = 3;
  result.values = 4;
  result.absolute_error = 6;
  result.squared_error = 16;
  const Metrics metrics = MetricsOf(Task::kRegression, result);
  CHECK(metrics[Metric::kMae] == 1.5);
  CHECK(metrics[Metric::kRmse] == 2);
  CHECK(std::isnan(metrics[Metric::kMicroF1]));
}

TEST_CASE("the quality of each task says which epoch is better") {
  const auto quality = [](Task task, const EvalResult& result) {
    const Metric decides = task == Task::kRegression ? Metric::kMae : Metric::kMicroF1;
    return QualityOf(task, decides, result);
  };
  EvalResult better{};
  EvalResult worse{};
  better.values = worse.values = 10;
  better.absolute_error = 4;
  worse.absolute_error = 5;
  const Quality a = quality(Task::kRegression, better);
  const Quality b = quality(Task::kRegression, worse);
  CHECK(Exceeds(a, b));
  CHECK_FALSE(Exceeds(b, a));
  CHECK_FALSE(Exceeds(a, a));
  CHECK(Exceeds(a, b, 0.09));
  CHECK_FALSE(Exceeds(a, b, 0.11));
  better.classes = {{3, 4, 4}};
  worse.classes = {{2, 2, 4}};
  CHECK(Exceeds(quality(Task::kMultiLabel, better), quality(Task::kMultiLabel, worse)));
  worse.classes = {{0, 0, 0}};  // nothing to find, nothing found
  CHECK(Exceeds(quality(Task::kMultiLabel, better), quality(Task::kMultiLabel, worse)));
}

TEST_CASE("any metric of a task may decide; one that is not there makes all epochs equal") {
  EvalResult better{};
  EvalResult worse{};
  better.nodes = worse.nodes = better.values = worse.values = 4;
  better.squared_error = 1;
  worse.squared_error = 2;
  better.ranking = {0.75, 0.5};
  worse.ranking = {0.5, 0.25};
  better.classes = worse.classes = {{1, 1, 1}, {1, 2, 1}};
  worse.classes[1] = {0, 2, 1};
  const auto exceeds = [&](Task task, Metric decides) {
    CHECK(HasMetric(task, decides));
    CHECK_FALSE(Exceeds(QualityOf(task, decides, worse), QualityOf(task, decides, better)));
    return Exceeds(QualityOf(task, decides, better), QualityOf(task, decides, worse));
  };
  CHECK(exceeds(Task::kRegression, Metric::kRmse));
  CHECK(exceeds(Task::kMultiLabel, Metric::kMacroF1));
  CHECK(exceeds(Task::kMultiLabel, Metric::kRocAuc));
  CHECK(exceeds(Task::kClassification, Metric::kAveragePrecision));
  better.ranking = worse.ranking = kUnranked;
  CHECK_FALSE(exceeds(Task::kMultiLabel, Metric::kRocAuc));
  CHECK_FALSE(HasMetric(Task::kMultiLabel, Metric::kAccuracy));
  CHECK_FALSE(HasMetric(Task::kRegression, Metric::kRocAuc));
  CHECK_FALSE(HasMetric(Task::kClassification, Metric::kMae));
}

TEST_CASE("results of chunks add up to that of all nodes, however they are cut") {
  std::mt19937 random(5);
  std::vector<uint32_t> labels(500);
  std::vector<uint32_t> predicted(500);
  for (size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<uint32_t>(random() % 7);
    predicted[i] = random() % 2 == 0 ? labels[i] : static_cast<uint32_t>(random() % 7);
  }
  const Metrics whole = MetricsOf(Task::kClassification, Classified(labels, predicted, 7));
  EvalResult sum{};
  for (size_t begin = 0; begin < labels.size();) {
    const size_t end = std::min(labels.size(), begin + 1 + random() % 90);
    const auto part = [&](const std::vector<uint32_t>& of) {
      return std::vector<uint32_t>(of.begin() + static_cast<std::ptrdiff_t>(begin),
                                   of.begin() + static_cast<std::ptrdiff_t>(end));
    };
    const EvalResult one = Classified(part(labels), part(predicted), 7);
    sum.Add(one, one.classes);
    begin = end;
  }
  const Metrics added = MetricsOf(Task::kClassification, sum);
  for (const Metric metric : {Metric::kAccuracy, Metric::kMicroF1, Metric::kMacroF1}) {
    CHECK(added[metric] == whole[metric]);
  }
}

}  // namespace gnnd
