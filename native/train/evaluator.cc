#include "train/evaluator.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "train/loss.h"

namespace gnnd {

Evaluator::Evaluator(const EvalInput& input, const Model& model, std::unique_ptr<LayerRunner> layer)
    : input_(input), model_(model), layer_(std::move(layer)) {
  std::vector<uint32_t> targets;
  for (const auto nodes : {input.val_nodes, input.test_nodes}) {
    std::transform(nodes.begin(), nodes.end(), std::back_inserter(targets),
                   [](int64_t node) { return static_cast<uint32_t>(node); });
  }
  targets_.nodes = SortedOnce(std::move(targets));
}

std::vector<uint32_t> Evaluator::SortedOnce(std::vector<uint32_t> nodes) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

const std::vector<uint32_t>& Evaluator::OutputsOf(const EvalPlan& plan, uint32_t layer) const {
  return plan.outputs[layer + (TransformsInput(model_.spec) ? 1 : 0)];
}

Result<EvalPlan> Evaluator::PlanOf(std::span<const uint32_t> targets,
                                   const std::function<bool()>& alive) const {
  const uint32_t lists = model_.spec.num_layers + (TransformsInput(model_.spec) ? 1 : 0);
  return PlanEvaluation(input_.topology, targets, lists, alive);
}

uint64_t Evaluator::BytesOf(const EvalPlan& plan) const {
  uint64_t peak = 0;
  uint64_t before = 0;
  for (uint32_t layer = 0; layer < model_.spec.num_layers; ++layer) {
    uint64_t bytes = OutputsOf(plan, layer).size() * ShapeOf(model_.spec, layer).out;
    const uint64_t outputs = bytes;
    if (TransformsInput(model_.spec)) {
      bytes += plan.outputs[layer].size() * TransformedColumns(model_.spec, layer);
    }
    peak = std::max(peak, before + bytes);
    before = outputs;
  }
  return peak * sizeof(float);
}

Status Evaluator::PlanParts(Targets* targets, const std::function<bool()>& alive) const {
  const std::span<const uint32_t> nodes(targets->nodes);
  std::vector<uint64_t> bounds = {0};
  uint64_t end = nodes.size();
  while (bounds.back() < nodes.size()) {
    const uint64_t begin = bounds.back();
    const auto part = nodes.subspan(begin, end - begin);
    auto plan = PlanOf(part, alive);
    if (!plan.ok()) return plan.status();
    const uint64_t bytes = BytesOf(*plan);
    if (bytes > input_.memory_bytes && part.size() > 1) {
      end = begin + part.size() / 2;
      continue;
    }
    if (part.size() == nodes.size()) {
      const uint64_t kept = OutputsOf(*plan, 0).size() * model_.spec.in_dim * sizeof(float);
      targets->keeps_aggregates =
          AggregatesFeatures(model_.spec) && bytes + kept <= input_.memory_bytes;
      targets->plan = std::move(*plan);
    }
    bounds.push_back(end);
    end = std::min<uint64_t>(nodes.size(), end + part.size());
  }
  targets->bounds = std::move(bounds);
  return Status::Ok();
}

Status Evaluator::RunParts(Targets* targets, std::span<const at::Tensor> parameters,
                           const std::function<bool()>& alive, const LogitsConsumer& consume) {
  progress_ = 0;
  num_targets_ = static_cast<double>(targets->nodes.size());
  if (targets->bounds.empty()) GNND_TRY(PlanParts(targets, alive));
  const std::vector<uint64_t>& bounds = targets->bounds;
  if (bounds.size() == 2) {
    const bool keep = targets == &targets_ && targets->keeps_aggregates;
    return RunPlan(targets->plan, keep, parameters, alive, consume);
  }
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    const auto part = std::span(targets->nodes).subspan(bounds[i], bounds[i + 1] - bounds[i]);
    auto plan = PlanOf(part, alive);
    if (!plan.ok()) return plan.status();
    GNND_TRY(RunPlan(*plan, false, parameters, alive, consume));
  }
  return Status::Ok();
}

Status Evaluator::Run(std::span<const at::Tensor> parameters, const std::function<bool()>& alive,
                      EvalReport* report) {
  *report = EvalReport();
  GNND_TRY(RunParts(&targets_, parameters, alive,
                    [&](std::span<const uint32_t> targets, const float* logits) {
                      Count(targets, logits, report);
                      return Status::Ok();
                    }));
  if (!std::isfinite(report->val_loss_sum)) {
    return Status(Code::kNumericDivergence, "the validation loss is not finite");
  }
  return Status::Ok();
}

Status Evaluator::Predict(std::span<const at::Tensor> parameters, std::span<const uint32_t> nodes,
                          const std::function<bool()>& alive, const LogitsConsumer& consume) {
  Targets targets;
  targets.nodes.assign(nodes.begin(), nodes.end());
  return RunParts(&targets, parameters, alive, consume);
}

Status Evaluator::RunPlan(const EvalPlan& plan, bool keep, std::span<const at::Tensor> parameters,
                          const std::function<bool()>& alive, const LogitsConsumer& consume) {
  uint64_t rows = 0;
  for (uint32_t layer = 0; layer < model_.spec.num_layers; ++layer) {
    rows += OutputsOf(plan, layer).size();
  }
  const double share = static_cast<double>(plan.outputs.back().size()) / num_targets_;
  progress_per_row_ = share / static_cast<double>(rows);
  layers_.Reset();
  RowTable in = input_.features;
  for (uint32_t layer = 0; layer < model_.spec.num_layers; ++layer) {
    LayerTask task;
    task.layer = layer;
    task.parameters = ParametersOf(model_, parameters, layer);
    task.in = in;
    if (TransformsInput(model_.spec)) {
      task.sources = plan.outputs[layer];
    } else if (layer > 0) {
      task.sources = plan.outputs[layer - 1];
    }
    task.nodes = OutputsOf(plan, layer);
    const uint64_t columns = ShapeOf(model_.spec, layer).out;
    const std::span out(layers_.Get<float>(task.nodes.size() * columns),
                        task.nodes.size() * columns);
    GNND_TRY(RunLayer(task, keep && layer == 0, alive, out.data()));
    in = RowTable(std::span<const float>(out), columns);
  }
  return consume(OutputsOf(plan, model_.spec.num_layers - 1), in.values<float>().data());
}

Status Evaluator::RunLayer(const LayerTask& task, bool keep, const std::function<bool()>& alive,
                           float* out) {
  const LayerShape shape = ShapeOf(model_.spec, task.layer);
  float* keep_to = nullptr;
  if (keep && kept_aggregates_ == nullptr) {
    kept_.Reset();
    keep_to = kept_.Get<float>(task.nodes.size() * shape.in);
  }
  GNND_TRY(layer_->Begin(task, alive));
  for (uint64_t begin = 0; begin < task.nodes.size();) {
    if (!alive()) return EvaluationAborted();
    const uint64_t end = layer_->ChunkEnd(begin);
    EvalChunk chunk;
    chunk.nodes = task.nodes.subspan(begin, end - begin);
    if (keep && kept_aggregates_ != nullptr) chunk.kept = kept_aggregates_ + begin * shape.in;
    if (keep_to != nullptr) chunk.keep_to = keep_to + begin * shape.in;
    chunk.out = out + begin * shape.out;
    layer_->Run(chunk);
    progress_ += progress_per_row_ * static_cast<double>(chunk.nodes.size());
    begin = end;
  }
  if (keep_to != nullptr) kept_aggregates_ = keep_to;
  return Status::Ok();
}

void Evaluator::Count(std::span<const uint32_t> targets, const float* logits,
                      EvalReport* report) const {
  const uint32_t classes = model_.spec.out_dim;
  const auto each = [&](std::span<const int64_t> nodes, auto&& visit) {
    for (const int64_t node : nodes) {
      const auto id = static_cast<uint32_t>(node);
      const auto at = std::lower_bound(targets.begin(), targets.end(), id);
      if (at == targets.end() || *at != id) continue;  // in another part
      const auto row = static_cast<uint64_t>(at - targets.begin());
      visit(std::span(logits + row * classes, classes), static_cast<uint32_t>(input_.labels[id]));
    }
  };
  each(input_.val_nodes, [report](std::span<const float> row, uint32_t label) {
    ++report->val_nodes;
    report->val_loss_sum += CrossEntropy<float>(row, label, nullptr);
    if (ArgMax(row) == label) ++report->val_correct;
  });
  each(input_.test_nodes, [report](std::span<const float> row, uint32_t label) {
    ++report->test_nodes;
    if (ArgMax(row) == label) ++report->test_correct;
  });
}

}  // namespace gnnd
