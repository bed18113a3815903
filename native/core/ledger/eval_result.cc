#include "core/ledger/eval_result.h"

#include <algorithm>

#include "core/base/check.h"

namespace gnnd {
namespace {

Metrics Unknown() {
  Metrics metrics;
  std::fill(std::begin(metrics.values), std::end(metrics.values),
            std::numeric_limits<double>::quiet_NaN());
  return metrics;
}

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// 2 TP / (2 TP + FP + FN)
double F1Of(const ClassCounts& counts) {
  return Share(2 * counts.hits, counts.predicted + counts.actual);
}

ClassCounts TotalOf(std::span<const ClassCounts> classes) {
  ClassCounts total{};
  for (const ClassCounts& one : classes) {
    total.hits += one.hits;
    total.predicted += one.predicted;
    total.actual += one.actual;
  }
  return total;
}

double MacroF1Of(Task task, std::span<const ClassCounts> classes) {
  double sum = 0;
  uint64_t counted = 0;
  for (const ClassCounts& one : classes) {
    if (task == Task::kClassification && one.predicted + one.actual == 0) continue;
    sum += F1Of(one);
    ++counted;
  }
  return counted == 0 ? 0 : sum / static_cast<double>(counted);
}

}  // namespace

void EvalResult::Add(const EvalSums& sums, std::span<const ClassCounts> counts) {
  GNND_CHECK(classes.empty() || classes.size() == counts.size());
  loss_sum += sums.loss_sum;
  nodes += sums.nodes;
  correct += sums.correct;
  values += sums.values;
  absolute_error += sums.absolute_error;
  squared_error += sums.squared_error;
  classes.resize(counts.size());
  for (size_t c = 0; c < counts.size(); ++c) {
    classes[c].hits += counts[c].hits;
    classes[c].predicted += counts[c].predicted;
    classes[c].actual += counts[c].actual;
  }
}

Metrics MetricsOf(Task task, const EvalResult& sum) {
  Metrics metrics = Unknown();
  if (sum.nodes == 0) return metrics;
  if (task == Task::kRegression) {
    const auto values = static_cast<double>(sum.values);
    metrics[Metric::kMae] = sum.absolute_error / values;
    metrics[Metric::kRmse] = std::sqrt(sum.squared_error / values);
    return metrics;
  }
  metrics[Metric::kRocAuc] = sum.ranking.roc_auc;
  metrics[Metric::kAveragePrecision] = sum.ranking.average_precision;
  if (task == Task::kClassification) metrics[Metric::kAccuracy] = Share(sum.correct, sum.nodes);
  if (sum.classes.empty()) return metrics;
  metrics[Metric::kMicroF1] = F1Of(TotalOf(sum.classes));
  metrics[Metric::kMacroF1] = MacroF1Of(task, sum.classes);
  return metrics;
}

Quality QualityOf(Task task, Metric decides, const EvalResult& sum) {
  switch (decides) {
    case Metric::kAccuracy:
      return {static_cast<double>(sum.correct), static_cast<double>(sum.nodes)};
    case Metric::kMicroF1: {
      const ClassCounts total = TotalOf(sum.classes);
      return {static_cast<double>(2 * total.hits),
              static_cast<double>(std::max<uint64_t>(1, total.predicted + total.actual))};
    }
    case Metric::kMae:
      return {-sum.absolute_error, static_cast<double>(sum.values)};
    default:
      break;
  }
  const double value = MetricsOf(task, sum)[decides];
  if (std::isnan(value)) return {0, 1};  // nothing to be ranked: as good as any such epoch
  return {decides == Metric::kRmse ? -value : value, 1};
}

bool HasMetric(Task task, Metric metric) {
  const bool is_error = metric == Metric::kMae || metric == Metric::kRmse;
  if (task == Task::kRegression || is_error) return (task == Task::kRegression) == is_error;
  return metric != Metric::kAccuracy || task == Task::kClassification;
}

}  // namespace gnnd
