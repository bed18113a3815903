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
  const uint32_t chunks_of_rows = shape.chunks;
  if (shape.phases > 0) {
    ++shape.phases;
    shape.chunks = pairs_.ChunksOf(nodes, chunks_of_rows);
    GNND_CHECK(shape.chunks >= chunks_of_rows);
  }
  shape.rows += pairs_.items(nodes);
  plans_[static_cast<uint32_t>(nodes)] = {shape, chunks_of_rows};
  return shape;
}

Status LinkEvaluator::RunChunk(const EvalTask& task, std::span<const at::Tensor> constants,
                               const Alive& alive, EvalResult* result) {
  const auto& [shape, chunks_of_rows] = plans_[static_cast<uint32_t>(task.run.nodes)];
  GNND_CHECK(task.phase < shape.phases);
  if (task.phase + 1 < shape.phases) {
    if (task.chunk < chunks_of_rows) return rows_->RunChunk(task, constants, alive, result);
    *result = EvalResult{};
    return Status::Ok();
  }
  std::vector<at::Tensor> host(constants.begin(), constants.end());
  for (at::Tensor& tensor : host) tensor = tensor.cpu();
  const LayerParameters head = ParametersOf(model_, host, model_.spec.num_layers);
  const RowTable rows(std::span<const float>(layers_.last_rows()), model_.spec.out_dim);
  return pairs_.Run(task, shape.chunks, {rows, head}, alive, result);
}

}  // namespace gnnd
