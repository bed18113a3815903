#include "train/evaluator.h"

#include <ATen/ops/addmm.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/base/check.h"
#include "core/dataset/features.h"
#include "train/dropout.h"
#include "train/gather_sum.h"
#include "train/loss.h"
#include "train/model.h"
#include "train/ops.h"
#include "train/parallel.h"

namespace gnnd {
namespace {

constexpr uint32_t kGrainRows = 64;
constexpr uint32_t kMaxChunkRows = 8192;
// Work between two calls of `alive`, in multiply-adds: some 10 ms of one core.
constexpr uint64_t kChunkWork = 400'000'000;
constexpr uint64_t kWorkPerGather = 8;  // see model.cc

Status Aborted() { return Status(Code::kAborted, "evaluation was told to stop"); }

}  // namespace

// Rows [begin, end) of one layer's outputs.
struct Evaluator::Chunk {
  uint32_t layer = 0;
  std::span<const uint32_t> nodes;  // global ids of the rows
  std::span<const float> in;        // the layer's input; rows by row_of_, or by id in layer 0
  const float* kept = nullptr;      // the rows' aggregates where they are known
  float* keep_to = nullptr;         // where to leave them for the next evaluation
  float* out = nullptr;             // [nodes.size(), out]
};

Evaluator::Evaluator(const EvalInput& input) : input_(input) {
  std::vector<uint32_t> targets;
  for (const auto nodes : {input.val_nodes, input.test_nodes}) {
    std::transform(nodes.begin(), nodes.end(), std::back_inserter(targets),
                   [](int64_t node) { return static_cast<uint32_t>(node); });
  }
  std::sort(targets.begin(), targets.end());
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  targets_ = std::move(targets);
}

uint64_t Evaluator::BytesOf(const EvalPlan& plan) const {
  uint64_t peak = 0;
  uint64_t before = 0;
  for (uint32_t layer = 0; layer < input_.model.num_layers; ++layer) {
    const uint64_t rows = plan.outputs[layer].size();
    const uint64_t bytes = rows * ShapeOf(input_.model, layer).out * sizeof(float);
    peak = std::max(peak, before + bytes);
    before = bytes;
  }
  return peak;
}

Status Evaluator::PlanRanges(const std::function<bool()>& alive) {
  const uint32_t num_nodes = input_.topology.num_nodes();
  row_of_.resize(num_nodes);
  if (input_.model.type == ModelType::kGcn) {
    node_norm_.resize(num_nodes);
    for (uint32_t v = 0; v < num_nodes; ++v) {
      const auto degree = static_cast<double>(input_.topology.degree(v));
      node_norm_[v] = static_cast<float>(1.0 / std::sqrt(degree + 1.0));
    }
  }
  std::vector<uint64_t> bounds = {0};
  uint64_t end = targets_.size();
  while (bounds.back() < targets_.size()) {
    const uint64_t begin = bounds.back();
    const auto part = std::span(targets_).subspan(begin, end - begin);
    auto plan = PlanEvaluation(input_.topology, part, input_.model.num_layers, alive);
    if (!plan.ok()) return plan.status();
    const uint64_t bytes = BytesOf(*plan);
    if (bytes > input_.memory_bytes && part.size() > 1) {
      end = begin + part.size() / 2;
      continue;
    }
    if (part.size() == targets_.size()) {
      const uint64_t kept = plan->outputs[0].size() * input_.model.in_dim * sizeof(float);
      keep_aggregates_ = bytes + kept <= input_.memory_bytes;
      plan_ = std::move(*plan);
    }
    bounds.push_back(end);
    end = std::min<uint64_t>(targets_.size(), end + part.size());
  }
  ranges_ = std::move(bounds);
  return Status::Ok();
}

Status Evaluator::Run(std::span<const at::Tensor> parameters, const std::function<bool()>& alive,
                      EvalReport* report) {
  if (ranges_.empty()) GNND_TRY(PlanRanges(alive));
  *report = EvalReport();
  for (size_t i = 0; i + 1 < ranges_.size(); ++i) {
    if (ranges_.size() == 2) {
      GNND_TRY(RunTargets(plan_, parameters, alive, report));
      continue;
    }
    const auto part = std::span(targets_).subspan(ranges_[i], ranges_[i + 1] - ranges_[i]);
    auto plan = PlanEvaluation(input_.topology, part, input_.model.num_layers, alive);
    if (!plan.ok()) return plan.status();
    GNND_TRY(RunTargets(*plan, parameters, alive, report));
  }
  if (!std::isfinite(report->val_loss_sum)) {
    return Status(Code::kNumericDivergence, "the validation loss is not finite");
  }
  return Status::Ok();
}

Status Evaluator::RunTargets(const EvalPlan& plan, std::span<const at::Tensor> parameters,
                             const std::function<bool()>& alive, EvalReport* report) {
  layers_.Reset();
  std::span<const float> in = input_.features;
  for (uint32_t layer = 0; layer < input_.model.num_layers; ++layer) {
    const uint64_t floats = plan.outputs[layer].size() * ShapeOf(input_.model, layer).out;
    float* out = layers_.Get<float>(floats);
    GNND_TRY(RunLayer(plan, layer, parameters, alive, in, out));
    in = {out, floats};
  }
  CountTargets(plan, in.data(), report);
  return Status::Ok();
}

Status Evaluator::RunLayer(const EvalPlan& plan, uint32_t layer,
                           std::span<const at::Tensor> parameters,
                           const std::function<bool()>& alive, std::span<const float> in,
                           float* out) {
  const LayerShape shape = ShapeOf(input_.model, layer);
  const std::span<const uint32_t> nodes(plan.outputs[layer]);
  if (layer > 0) {
    const auto& sources = plan.outputs[layer - 1];
    for (uint32_t row = 0; row < sources.size(); ++row) row_of_[sources[row]] = row;
  }
  float* keep = nullptr;
  if (layer == 0 && keep_aggregates_ && kept_aggregates_ == nullptr) {
    kept_.Reset();
    keep = kept_.Get<float>(nodes.size() * shape.in);
  }
  const uint64_t work_per_row = uint64_t{2} * shape.in * shape.out;
  for (uint64_t begin = 0; begin < nodes.size();) {
    if (!alive()) return Aborted();
    uint64_t end = begin;
    for (uint64_t work = 0; end < nodes.size() && end - begin < kMaxChunkRows; ++end) {
      work += work_per_row + input_.topology.degree(nodes[end]) * shape.in * kWorkPerGather;
      if (work > kChunkWork && end > begin) break;
    }
    Chunk chunk;
    chunk.layer = layer;
    chunk.nodes = nodes.subspan(begin, end - begin);
    chunk.in = in;
    if (layer == 0 && kept_aggregates_ != nullptr) {
      chunk.kept = kept_aggregates_ + begin * shape.in;
    }
    if (keep != nullptr) chunk.keep_to = keep + begin * shape.in;
    chunk.out = out + begin * shape.out;
    RunChunk(chunk, parameters);
    begin = end;
  }
  if (keep != nullptr) kept_aggregates_ = keep;
  return Status::Ok();
}

void Evaluator::AggregateChunk(const Chunk& chunk, float* out) {
  const TopologyView& topology = input_.topology;
  const auto rows = static_cast<uint32_t>(chunk.nodes.size());
  const bool gcn = input_.model.type == ModelType::kGcn;
  uint32_t* indptr = chunk_.Get<uint32_t>(uint64_t{rows} + 1);
  indptr[0] = 0;
  for (uint32_t r = 0; r < rows; ++r) {
    const uint64_t end = indptr[r] + topology.degree(chunk.nodes[r]);
    GNND_CHECK(end <= UINT32_MAX);
    indptr[r + 1] = static_cast<uint32_t>(end);
  }
  uint32_t* index = chunk_.Get<uint32_t>(indptr[rows]);
  float* weight = gcn ? chunk_.Get<float>(indptr[rows]) : nullptr;
  float* scale = chunk_.Get<float>(rows);
  uint32_t* self_index = chunk_.Get<uint32_t>(rows);
  const bool by_id = chunk.layer == 0;
  for (uint32_t r = 0; r < rows; ++r) {
    const uint32_t v = chunk.nodes[r];
    const uint32_t degree = indptr[r + 1] - indptr[r];
    self_index[r] = by_id ? v : row_of_[v];
    scale[r] = gcn ? node_norm_[v] : degree == 0 ? 0.0F : 1.0F / static_cast<float>(degree);
    const uint32_t* neighbours = topology.indices.data() + topology.indptr[v];
    for (uint32_t k = 0; k < degree; ++k) {
      const uint32_t u = neighbours[k];
      index[indptr[r] + k] = by_id ? u : row_of_[u];
      if (gcn) weight[indptr[r] + k] = node_norm_[u];
    }
  }
  GatherSum<float> op;
  op.columns = ShapeOf(input_.model, chunk.layer).in;
  op.x = chunk.in.data();
  op.x_stride = op.columns;
  op.indptr = indptr;
  op.index = index;
  op.weight = weight;
  op.scale = scale;
  if (gcn) {
    op.self = chunk.in.data();
    op.self_stride = op.columns;
    op.self_index = self_index;
    op.self_weight = scale;
    op.self_rows = rows;
  }
  op.out = out;
  op.out_stride = op.columns;
  ParallelRows(rows, kGrainRows,
               [&op](uint32_t begin, uint32_t end) { RunGatherSum(op, begin, end); });
}

void Evaluator::RunChunk(const Chunk& chunk, std::span<const at::Tensor> parameters) {
  chunk_.Reset();
  const ModelSpec& model = input_.model;
  const LayerShape shape = ShapeOf(model, chunk.layer);
  const uint64_t rows = chunk.nodes.size();
  const LayerParameters mine = ParametersOf(model, parameters, chunk.layer);
  const float* aggregated = chunk.kept;
  if (aggregated == nullptr) {
    float* to = chunk.keep_to != nullptr ? chunk.keep_to : chunk_.Get<float>(rows * shape.in);
    AggregateChunk(chunk, to);
    aggregated = to;
  }
  const auto view = [rows](const float* data, uint32_t columns) {
    return ViewOf(const_cast<float*>(data), static_cast<int64_t>(rows), columns);
  };
  at::Tensor out = view(chunk.out, shape.out);
  at::addmm_out(out, mine.bias, view(aggregated, shape.in), mine.weight.t());
  if (model.type == ModelType::kGraphSage) {
    uint32_t* own = chunk_.Get<uint32_t>(rows);
    for (uint64_t r = 0; r < rows; ++r) {
      own[r] = chunk.layer == 0 ? chunk.nodes[r] : row_of_[chunk.nodes[r]];
    }
    float* self = chunk_.Get<float>(rows * shape.in);
    GatherRows(chunk.in, shape.in, {own, rows}, {self, rows * shape.in});
    out.addmm_(view(self, shape.in), mine.weight_self.t());
  }
  if (chunk.layer + 1 == model.num_layers) return;
  DropoutRows<float> relu;
  relu.rows = chunk.out;
  relu.stride = shape.out;
  relu.columns = shape.out;
  relu.relu = true;
  RunDropout(relu, 0, static_cast<uint32_t>(rows));
}

void Evaluator::CountTargets(const EvalPlan& plan, const float* logits, EvalReport* report) const {
  const std::vector<uint32_t>& targets = plan.outputs.back();
  const uint32_t classes = input_.model.out_dim;
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
