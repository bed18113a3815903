#pragma once

#include "core/executor/train_work.h"
#include "core/metric/metric.h"
#include "train/work/torch_work.h"

namespace gnnd::test {

// The results for both sets of nodes, evaluated by one Trainer.
struct EvalReport {
  double val_loss_sum = 0;
  uint64_t val_nodes = 0;
  uint64_t val_correct = 0;
  uint64_t test_nodes = 0;
  uint64_t test_correct = 0;
  uint64_t rows = 0;

  bool operator==(const EvalReport&) const = default;
};

// Runs all chunks of an evaluation in order; returns the sum over the last phase's.
inline Result<EvalResult> EvaluateNodes(TorchWork& work, EvalNodes nodes,
                                        const ParametersView& parameters, const Alive& alive) {
  const Result<EvalShape> shape = work.PlanEvaluation(nodes, alive);
  if (!shape.ok()) return shape.status();
  EvalResult sum{};
  EvalTask task;
  task.run.nodes = nodes;
  for (task.phase = 0; task.phase < shape->phases; ++task.phase) {
    for (task.chunk = 0; task.chunk < shape->chunks; ++task.chunk) {
      EvalResult one{};
      GNND_TRY(work.EvaluateChunk(task, parameters, alive, &one));
      if (one.sums.items > 0) sum.Add(one.sums, one.counts);
      sum.rows += one.rows;
    }
  }
  work.EndEvaluation(task.run);
  return sum;
}

inline Status Evaluate(TorchWork& work, const ParametersView& parameters, const Alive& alive,
                       EvalReport* report) {
  const auto val = EvaluateNodes(work, EvalNodes::kValidation, parameters, alive);
  if (!val.ok()) return val.status();
  const auto test = EvaluateNodes(work, EvalNodes::kTest, parameters, alive);
  if (!test.ok()) return test.status();
  *report = {val->sums.loss,
             val->sums.items,
             val->sums.counts[kCorrect],
             test->sums.items,
             test->sums.counts[kCorrect],
             val->rows + test->rows};
  return Status::Ok();
}

inline Status Evaluate(TorchWork& work, std::span<const float> parameters, const Alive& alive,
                       EvalReport* report) {
  return Evaluate(work, ParametersView{.floats = parameters}, alive, report);
}

}  // namespace gnnd::test
