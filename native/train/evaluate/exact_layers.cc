#include "train/evaluate/exact_layers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/graph/features.h"
#include "train/evaluate/device_eval_input.h"
#include "train/input/link_use.h"

namespace gnnd {

ExactLayers::ExactLayers(const BlockInput& input, const Model& model, MakeRunner host)
    : input_(input),
      model_(model),
      graph_{input.options.topology, input.options.edge_weights},
      host_(std::move(host)),
      runner_(host_()),
      layout_(EvalLayout::Of(model.spec, input.options.topology.num_nodes())) {
  const LinkUse* const links = input.options.links;
  if (links == nullptr || !links->test_messages) return;
  test_graph_ = EvalGraph{links->test_messages->topology, {}};
  if (!graph_.edge_weights.empty()) test_graph_->edge_weights = links->test_messages->edge_weights;
}

Status ExactLayers::OpenScratch() {
  if (scratch_) return Status::Ok();
  const EvalPlace& place = input_.options.eval_place;
  UniqueFd own;
  if (place.fd < 0) {
    const bool fits = layout_.total_bytes <= place.memory_bytes;
    own = GNND_VALUE(EvalScratch::Create(layout_.total_bytes, fits ? std::string() : place.folder));
  }
  scratch_ =
      GNND_VALUE(EvalScratch::Attach(own.valid() ? own.get() : place.fd, layout_.total_bytes));
  return Status::Ok();
}

Result<EvalPlan> ExactLayers::Plan(const EvalWanted& wanted, const Alive& alive, EvalNodes nodes) {
  GNND_TRY(OpenScratch());
  const bool elsewhere = nodes == EvalNodes::kTest && test_graph_;
  return PlanEvaluation(elsewhere ? *test_graph_ : graph_, model_.spec, wanted, alive);
}

float* ExactLayers::HiddenRows(uint32_t layer) const {
  return scratch_->at(layout_.hidden_at[layer % 2]);
}

LayerTask ExactLayers::TaskOf(const EvalPlan& plan, const EvalPhase& phase,
                              std::span<const at::Tensor> parameters) const {
  LayerTask task;
  task.layer = phase.layer;
  task.transforms_first = plan.transforms_first[phase.layer];
  task.graph = plan.graph;
  task.parameters = ParametersOf(model_, parameters, phase.layer);
  task.in = input_.options.features;
  // Sums over another graph are others.
  const bool may_keep = plan.graph == &graph_ && layout_.kept_bytes > 0;
  if (phase.layer == 0 && may_keep &&
      scratch_->size() >= layout_.total_bytes + layout_.kept_bytes) {
    task.kept = scratch_->at(layout_.kept_at);
    task.is_kept = reinterpret_cast<uint8_t*>(scratch_->at(layout_.is_kept_at));
  }
  if (phase.layer > 0) {
    const uint64_t columns = ShapeOf(model_.spec, phase.layer).in;
    const uint64_t floats = input_.options.topology.num_nodes() * columns;
    task.in = RowTable(std::span<const float>(HiddenRows(phase.layer - 1), floats), columns);
  }
  task.transformed = scratch_->at(layout_.transformed_at);
  task.scores = scratch_->at(layout_.scores_at);
  return task;
}

// Computes rows of a hidden layer, and moves those of scattered blocks to their places.
void ExactLayers::RunBlock(const LayerTask& task, std::span<const uint32_t> nodes, float* hidden) {
  const uint64_t columns = ShapeOf(model_.spec, task.layer).out;
  if (Consecutive(nodes)) return runner_->Run(task, nodes, hidden + nodes.front() * columns);
  out_.Reset();
  float* rows = out_.Get<float>(nodes.size() * columns);
  runner_->Run(task, nodes, rows);
  ScatterRows(rows, nodes, columns, hidden);
}

// Gives the rows of those nodes of a computed block that are targets.
Status ExactLayers::GiveHidden(const EvalPlan& plan, uint32_t layer,
                               std::span<const uint32_t> nodes, const RowsConsumer& consume) {
  std::vector<uint32_t> targets;
  for (const uint32_t node : nodes) {
    if (plan.sets.back().Has(node)) targets.push_back(node);
  }
  if (targets.empty()) return Status::Ok();
  const uint64_t columns = ShapeOf(model_.spec, layer).out;
  const uint64_t floats = targets.size() * columns;
  const float* const hidden = HiddenRows(layer);
  if (Consecutive(targets)) {
    return consume({layer, targets, {hidden + targets.front() * columns, floats}});
  }
  out_.Reset();
  const std::span<float> rows(out_.Get<float>(floats), floats);
  const uint64_t all = input_.options.topology.num_nodes() * columns;
  GatherRows(RowTable(std::span(hidden, all), columns), targets, rows);
  return consume({layer, targets, rows});
}

Status ExactLayers::Run(const EvalPlan& plan, const EvalPhase& phase, uint32_t chunk,
                        std::span<const at::Tensor> parameters, const Alive& alive,
                        const RowsConsumer& consume, uint64_t* rows) {
  const uint32_t num_nodes = input_.options.topology.num_nodes();
  const uint64_t first = uint64_t{chunk} * plan.chunk_nodes;
  const uint64_t last = std::min<uint64_t>(num_nodes, first + plan.chunk_nodes);
  GNND_CHECK(first < last);
  std::vector<uint32_t> members;
  plan.sets[phase.set].List(static_cast<uint32_t>(first), static_cast<uint32_t>(last), &members);
  const std::span<const uint32_t> nodes(members);
  const LayerTask task = TaskOf(plan, phase, parameters);
  const uint64_t columns = ShapeOf(model_.spec, phase.layer).out;
  for (uint64_t begin = 0; begin < nodes.size();) {
    if (!alive()) return EvaluationAborted();
    const uint64_t end = runner_->BlockEnd(task, nodes, begin);
    const auto block = nodes.subspan(begin, end - begin);
    if (phase.transforms) {
      runner_->Transform(task, block);
    } else if (phase.layer + 1 == plan.depth()) {
      out_.Reset();
      float* const out = out_.Get<float>(block.size() * columns);
      runner_->Run(task, block, out);
      GNND_TRY(consume({phase.layer, block, {out, block.size() * columns}}));
    } else {
      RunBlock(task, block, HiddenRows(phase.layer));
      if (plan.is_wanted[phase.layer]) GNND_TRY(GiveHidden(plan, phase.layer, block, consume));
    }
    begin = end;
  }
  *rows = nodes.size();
  return Status::Ok();
}

std::span<float> ExactLayers::last_rows() const {
  GNND_CHECK(scratch_ && model_.spec.head);
  const uint64_t floats = uint64_t{input_.options.topology.num_nodes()} * model_.spec.out_dim;
  return {scratch_->at(layout_.hidden_at[(model_.spec.num_layers - 1) % 2]), floats};
}

void ExactLayers::End() {
  if (scratch_) scratch_->Clear(layout_.total_bytes);
}

Status ExactLayers::UseDevice(DeviceSide& side, Workspace* memory) {
  auto there = GNND_VALUE(DeviceInput::Create(input_.options, input_.store, side, memory));
  runner_ = std::make_unique<EvalLayer>(input_.options, model_, std::move(there));
  return Status::Ok();
}

}  // namespace gnnd
