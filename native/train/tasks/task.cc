#include "train/tasks/task.h"

#include <cmath>

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

EvalCount::EvalCount(const NodeTargets& targets, bool with_loss, EvalResult* result)
    : targets_(targets), with_loss_(with_loss), result_(result) {
  TaskOf(targets.task).Begin(targets, result);
}

void EvalCount::Add(uint64_t node, std::span<const float> outputs) {
  const NodeTask& task = TaskOf(targets_.task);
  ++result_->nodes;
  if (targets_.ranked_columns > 0) task.Score(targets_, node, outputs, result_);
  task.Count(targets_, node, outputs, with_loss_, &known_, result_);
}

Status EvalCount::Finish() const {
  const EvalResult& result = *result_;
  if (std::isfinite(result.loss_sum) && std::isfinite(result.squared_error)) return Status::Ok();
  return Status(Code::kNumericDivergence, "the validation loss is not finite");
}

std::vector<float> WeightsOf(const ClassWeighting& weighting, const NodeTargets& targets,
                             std::span<const int64_t> train) {
  if (!weighting.balanced) return weighting.weights;
  return TaskOf(targets.task).BalancedWeights(targets, train);
}

}  // namespace gnnd
