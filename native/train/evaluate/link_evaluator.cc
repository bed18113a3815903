#include "train/evaluate/link_evaluator.h"

#include <vector>

#include "core/base/check.h"
#include "train/evaluate/eval_input.h"

namespace gnnd {

Status KeptRows::Take(const EvalTask&, const LayerRows& rows, EvalResult*) {
  ScatterRows(rows.values.data(), rows.nodes, rows.values.size() / rows.nodes.size(),
              layers_.last_rows().data());
  return Status::Ok();
}

Result<EvalShape> LinkEvaluator::Plan(EvalNodes nodes, const Alive& alive) {
  EvalShape shape = GNND_VALUE(rows_->Plan(nodes, alive));
  if (shape.phases > 0) ++shape.phases;
  shape.rows += ranking_.links(nodes);
  shapes_[static_cast<uint32_t>(nodes)] = shape;
  return shape;
}

Status LinkEvaluator::RunChunk(const EvalTask& task, std::span<const at::Tensor> constants,
                               const Alive& alive, EvalResult* result) {
  const EvalShape& shape = shapes_[static_cast<uint32_t>(task.run.nodes)];
  GNND_CHECK(task.phase < shape.phases);
  if (task.phase + 1 < shape.phases) return rows_->RunChunk(task, constants, alive, result);
  std::vector<at::Tensor> host(constants.begin(), constants.end());
  for (at::Tensor& tensor : host) tensor = tensor.cpu();
  const LayerParameters head = ParametersOf(model_, host, model_.spec.num_layers);
  const RowTable rows(std::span<const float>(layers_.last_rows()), model_.spec.out_dim);
  return ranking_.Rank(task, shape.chunks, {rows, head}, alive, result);
}

}  // namespace gnnd
