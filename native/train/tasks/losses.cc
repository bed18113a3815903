#include "train/tasks/losses.h"

#include <cmath>

#include "core/metric/metric.h"
#include "train/ops/operators.h"

namespace gnnd {

Status ComputeLoss(const LossInput& input, const at::Tensor& logits, const at::Tensor& grad,
                   Workspace* workspace, BatchReport* report) {
  const NodeTargets& targets = input.targets;
  LossRows op;
  op.logits = logits.const_data_ptr<float>();
  op.labels = input.labels;
  op.rows = static_cast<uint32_t>(logits.size(0));
  op.classes = targets.width;
  op.grad = grad.data_ptr<float>();
  op.task = targets.task;
  op.targets = input.rows.values.data();
  op.weights = targets.weights.empty() ? nullptr : targets.weights.data();
  const LossSums sums = workspace->operators().loss(op, workspace);
  *report = BatchReport();
  report->sums.items = op.rows;
  report->sums.loss = sums.loss;
  report->sums.counts[kCorrect] = sums.correct;
  if (std::isfinite(sums.loss)) return Status::Ok();
  return Status(Code::kNumericDivergence, "the training loss is not finite");
}

}  // namespace gnnd
