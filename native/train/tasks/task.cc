#include "train/tasks/task.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"

namespace gnnd {

const NodeTask& TaskOf(Task task) {
  switch (task) {
    case Task::kClassification:
      return ClassesOfNodes();
    case Task::kMultiLabel:
      return LabelsOfNodes();
    case Task::kRegression:
      break;
  }
  return NumbersOfNodes();
}

NodeTargets TargetsOf(const Dataset& dataset) {
  NodeTargets targets;
  targets.task = dataset.counts().task;
  targets.width = static_cast<uint32_t>(dataset.counts().num_classes);
  targets.labels = dataset.labels();
  targets.label_bits = dataset.label_bits();
  targets.values = dataset.targets();
  return targets;
}

uint64_t NodeTargets::rows() const { return width == 0 ? labels.size() : TaskOf(task).Rows(*this); }

bool NodeTargets::Has(uint64_t node) const { return TaskOf(task).Has(*this, node); }

const char* NodeTargets::what() const { return TaskOf(task).what(); }

void NodeTargets::Read(std::span<const uint32_t> nodes, TargetRows* rows) const {
  TaskOf(task).Read(*this, nodes, rows);
}

Quality NodeTask::QualityOf(Metric decides, const EvalResult&, const Metrics& metrics) const {
  const double value = metrics[decides];
  if (std::isnan(value)) return {0, 1};  // nothing to compare: as good as any such epoch
  return {decides == Metric::kRmse ? -value : value, 1};
}

Quality MicroF1Quality(const EvalResult& whole) {
  const ClassCounts total = TotalOf(ClassesIn(whole.counts));
  return {static_cast<double>(2 * total.hits),
          static_cast<double>(std::max<uint64_t>(1, total.predicted + total.actual))};
}

namespace {

ScoreTable TableOf(const NodeTargets& targets, std::span<std::byte> kept) {
  if (!targets.ranks) return {};
  return ScoreTable::In(kept, TaskOf(targets.task).ScoresOf(targets));
}

}  // namespace

EvalCount::EvalCount(const NodeTargets& targets, bool with_loss, std::span<std::byte> kept,
                     EvalResult* result)
    : targets_(targets), with_loss_(with_loss), table_(TableOf(targets, kept)), result_(result) {
  TaskOf(targets.task).Begin(targets, result);
}

void EvalCount::Add(uint64_t node, uint64_t place, std::span<const float> outputs) {
  const NodeTask& task = TaskOf(targets_.task);
  ++result_->sums.items;
  if (targets_.ranks) {
    const uint64_t columns = table_.rankings.size();
    GNND_CHECK((place + 1) * columns <= table_.scores.size());
    task.Score(targets_, node, outputs, table_.scores.subspan(place * columns, columns),
               table_.outcomes.subspan(place * columns, columns));
  }
  task.Count(targets_, node, outputs, with_loss_, &known_, result_);
}

Status EvalCount::Finish() const {
  const TaskSums& sums = result_->sums;
  const bool is_finite = std::isfinite(sums.loss) && std::ranges::all_of(sums.totals, [](double x) {
                           return std::isfinite(x);
                         });
  if (is_finite) return Status::Ok();
  return Status(Code::kNumericDivergence, "the validation loss is not finite");
}

Status ReduceScores(const NodeTargets& targets, const ReduceTask& task, const Alive& alive) {
  if (task.items == 0) return Status::Ok();  // no node is evaluated, or all are predicted
  return RankColumns(TableOf(targets, task.kept), task.items, task.chunk, task.chunks, alive);
}

Judgement JudgementOf(const NodeTargets& targets, const EvalResult& whole,
                      std::span<std::byte> kept) {
  const NodeTask& task = TaskOf(targets.task);
  Metrics metrics;
  if (whole.sums.items > 0) metrics = task.MetricsOf(whole);
  if (whole.sums.items > 0 && targets.ranks) {
    const Ranking mean = MeanOf(TableOf(targets, kept).rankings);
    metrics[Metric::kRocAuc] = mean.roc_auc;
    metrics[Metric::kAveragePrecision] = mean.average_precision;
  }
  Judgement judgement{task.QualityOf(targets.decides, whole, metrics), {}};
  static_assert(kNumMetrics <= Judgement::kMetricSlots);
  std::ranges::copy(metrics.values(), judgement.metrics);
  return judgement;
}

std::vector<float> WeightsOf(const ClassWeighting& weighting, const NodeTargets& targets,
                             std::span<const int64_t> train) {
  if (!weighting.balanced) return weighting.weights;
  return TaskOf(targets.task).BalancedWeights(targets, train);
}

}  // namespace gnnd
