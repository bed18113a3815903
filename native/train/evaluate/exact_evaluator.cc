#include "train/evaluate/exact_evaluator.h"

#include "core/base/check.h"

namespace gnnd {

Result<EvalShape> ExactEvaluator::Plan(EvalNodes nodes, const Alive& alive) {
  std::optional<EvalPlan>& plan = plans_[static_cast<uint32_t>(nodes)];
  if (!plan) {
    plan = GNND_VALUE(layers_.Plan({outcome_.nodes(nodes), outcome_.layers()}, alive, nodes));
  }
  return EvalShape{static_cast<uint32_t>(plan->phases.size()), plan->chunks, plan->rows};
}

Status ExactEvaluator::RunChunk(const EvalTask& task, std::span<const at::Tensor> constants,
                                const Alive& alive, EvalResult* result) {
  const std::optional<EvalPlan>& plan = plans_[static_cast<uint32_t>(task.run.nodes)];
  GNND_CHECK(plan && task.phase < plan->phases.size());
  *result = EvalResult{};
  return layers_.Run(
      *plan, plan->phases[task.phase], task.chunk, constants, alive,
      [&](const LayerRows& rows) { return outcome_.Take(task, rows, result); }, &result->rows);
}

uint64_t ExactEvaluator::work_bytes() const {
  uint64_t bytes = layers_.work_bytes() + outcome_.bytes();
  for (const std::optional<EvalPlan>& plan : plans_) {
    if (!plan) continue;
    for (const NodeSet& set : plan->sets) bytes += set.bytes();
  }
  return bytes;
}

}  // namespace gnnd
