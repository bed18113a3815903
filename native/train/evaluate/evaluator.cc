#include "train/evaluate/evaluator.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace gnnd {

Evaluator::Evaluator(const TrainOptions& options, const Model& model,
                     std::unique_ptr<LayerRunner> layer)
    : options_(options),
      model_(model),
      layer_(std::move(layer)),
      layout_(EvalLayout::Of(model.spec, options.topology.num_nodes())),
      targets_{TargetsOf(options, EvalNodes::kValidation), TargetsOf(options, EvalNodes::kTest)} {}

Status Evaluator::OpenScratch() {
  if (scratch_) return Status::Ok();
  const EvalPlace& place = options_.eval_place;
  UniqueFd own;
  if (place.fd < 0) {
    const bool fits = layout_.total_bytes <= place.memory_bytes;
    own = GNND_VALUE(EvalScratch::Create(layout_.total_bytes, fits ? std::string() : place.folder));
  }
  scratch_ =
      GNND_VALUE(EvalScratch::Attach(own.valid() ? own.get() : place.fd, layout_.total_bytes));
  return Status::Ok();
}

Result<EvalShape> Evaluator::Plan(EvalNodes nodes, const Alive& alive) {
  std::optional<EvalPlan>& plan = plans_[static_cast<uint32_t>(nodes)];
  if (!plan) {
    GNND_TRY(OpenScratch());
    const std::vector<uint32_t>& targets = targets_[static_cast<uint32_t>(nodes)].once();
    plan = GNND_VALUE(PlanEvaluation(options_.topology, model_.spec, targets, alive));
  }
  return EvalShape{static_cast<uint32_t>(plan->phases.size()), plan->chunks, plan->rows};
}

LayerTask Evaluator::TaskOf(const EvalPlan& plan, const EvalPhase& phase,
                            std::span<const at::Tensor> parameters) const {
  LayerTask task;
  task.layer = phase.layer;
  task.transforms_first = plan.transforms_first[phase.layer];
  task.parameters = ParametersOf(model_, parameters, phase.layer);
  task.in = options_.features;
  if (phase.layer == 0 && scratch_->size() >= layout_.total_bytes + layout_.kept_bytes &&
      layout_.kept_bytes > 0) {
    task.kept = scratch_->at(layout_.kept_at);
    task.is_kept = reinterpret_cast<uint8_t*>(scratch_->at(layout_.is_kept_at));
  }
  if (phase.layer > 0) {
    const uint64_t columns = ShapeOf(model_.spec, phase.layer).in;
    const uint64_t floats = options_.topology.num_nodes() * columns;
    const float* rows = scratch_->at(layout_.hidden_at[(phase.layer - 1) % 2]);
    task.in = RowTable(std::span(rows, floats), columns);
  }
  task.transformed = scratch_->at(layout_.transformed_at);
  task.scores = scratch_->at(layout_.scores_at);
  return task;
}

// Computes rows of a hidden layer, and moves those of scattered blocks to their places.
void Evaluator::RunBlock(const LayerTask& task, std::span<const uint32_t> nodes, float* hidden) {
  const uint64_t columns = ShapeOf(model_.spec, task.layer).out;
  if (Consecutive(nodes)) return layer_->Run(task, nodes, hidden + nodes.front() * columns);
  out_.Reset();
  float* rows = out_.Get<float>(nodes.size() * columns);
  layer_->Run(task, nodes, rows);
  ScatterRows(rows, nodes, columns, hidden);
}

Status Evaluator::RunRows(const EvalPlan& plan, const EvalPhase& phase, uint32_t chunk,
                          std::span<const at::Tensor> parameters, const Alive& alive,
                          const LogitsConsumer& consume, uint64_t* rows) {
  const uint32_t num_nodes = options_.topology.num_nodes();
  const uint64_t first = uint64_t{chunk} * plan.chunk_nodes;
  const uint64_t last = std::min<uint64_t>(num_nodes, first + plan.chunk_nodes);
  GNND_CHECK(first < last);
  std::vector<uint32_t> members;
  plan.sets[phase.set].List(static_cast<uint32_t>(first), static_cast<uint32_t>(last), &members);
  const std::span<const uint32_t> nodes(members);
  const LayerTask task = TaskOf(plan, phase, parameters);
  const bool is_last = !phase.transforms && phase.layer + 1 == model_.spec.num_layers;
  for (uint64_t begin = 0; begin < nodes.size();) {
    if (!alive()) return EvaluationAborted();
    const uint64_t end = layer_->BlockEnd(task, nodes, begin);
    const auto block = nodes.subspan(begin, end - begin);
    if (phase.transforms) {
      layer_->Transform(task, block);
    } else if (is_last) {
      out_.Reset();
      float* logits = out_.Get<float>(block.size() * model_.spec.out_dim);
      layer_->Run(task, block, logits);
      GNND_TRY(consume(block, logits));
    } else {
      RunBlock(task, block, scratch_->at(layout_.hidden_at[phase.layer % 2]));
    }
    begin = end;
  }
  *rows = nodes.size();
  return Status::Ok();
}

Status Evaluator::RunChunk(const EvalTask& task, std::span<const at::Tensor> parameters,
                           const Alive& alive, EvalResult* result) {
  const std::optional<EvalPlan>& plan = plans_[static_cast<uint32_t>(task.run.nodes)];
  GNND_CHECK(plan && task.phase < plan->phases.size());
  const EvalTargets& targets = targets_[static_cast<uint32_t>(task.run.nodes)];
  *result = EvalResult{};
  return RunRows(
      *plan, plan->phases[task.phase], task.chunk, parameters, alive,
      [&](std::span<const uint32_t> nodes, const float* rows) {
        const std::span<const float> logits(rows, nodes.size() * model_.spec.out_dim);
        if (predictions_ == nullptr) {
          return targets.Count(task, nodes, logits, options_.targets, result);
        }
        return predictions_->Write(targets.PlaceOf(nodes.front()), logits);
      },
      &result->rows);
}

void Evaluator::End() {
  if (scratch_) scratch_->Clear(layout_.total_bytes);
}

Status Evaluator::Predict(std::span<const at::Tensor> parameters, std::span<const uint32_t> nodes,
                          const Alive& alive, const LogitsConsumer& consume) {
  progress_ = 0;
  GNND_TRY(OpenScratch());
  const EvalPlan plan = GNND_VALUE(PlanEvaluation(options_.topology, model_.spec, nodes, alive));
  uint64_t done = 0;
  for (const EvalPhase& phase : plan.phases) {
    for (uint32_t chunk = 0; chunk < plan.chunks; ++chunk) {
      uint64_t rows = 0;
      GNND_TRY(RunRows(plan, phase, chunk, parameters, alive, consume, &rows));
      done += rows;
      progress_ = static_cast<double>(done) / static_cast<double>(plan.rows);
    }
  }
  End();
  return Status::Ok();
}

uint64_t Evaluator::work_bytes() const {
  uint64_t bytes = layer_->reserved_bytes() + out_.reserved_bytes();
  for (const EvalTargets& targets : targets_) bytes += targets.bytes();
  for (const std::optional<EvalPlan>& plan : plans_) {
    if (!plan) continue;
    for (const NodeSet& set : plan->sets) bytes += set.bytes();
  }
  return bytes;
}

}  // namespace gnnd
