#include "train/eval_layer.h"

#include <ATen/ops/mean.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/dataset/features.h"
#include "train/attention.h"
#include "train/gather_sum.h"
#include "train/hidden.h"
#include "train/matmul.h"
#include "train/parallel.h"

namespace gnnd {
namespace {

constexpr uint32_t kGrainRows = 64;
constexpr uint32_t kMaxChunkRows = 8192;
// Work between two calls of `alive`, in multiply-adds: some 10 ms of one core.
constexpr uint64_t kChunkWork = 400'000'000;
constexpr uint64_t kWorkPerGather = 8;  // see model.cc

at::Tensor RowsOf(const float* data, uint64_t rows, uint64_t columns) {
  return ViewOf(const_cast<float*>(data), static_cast<int64_t>(rows),
                static_cast<int64_t>(columns));
}

// out = x weight^T + bias, where there is one.
void AffineInto(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                at::Tensor* out) {
  if (bias.defined()) out->copy_(bias.expand_as(*out));
  MatMul(x, weight.t(), /*add=*/bias.defined(), *out);
}

}  // namespace

bool TransformsInput(const ModelSpec& spec) {
  return IsAttention(spec.type) || spec.type == ModelType::kPinSage;
}

uint32_t TransformedColumns(const ModelSpec& spec, uint32_t layer) {
  const LayerShape shape = ShapeOf(spec, layer);
  if (spec.type == ModelType::kPinSage) return shape.in;
  return layer + 1 == spec.num_layers ? shape.out * spec.heads : shape.out;
}

Status EvalLayer::Begin(const LayerTask& task, const std::function<bool()>& alive) {
  task_ = task;
  const uint32_t num_nodes = input_.topology.num_nodes();
  row_of_.resize(num_nodes);
  for (uint32_t row = 0; row < task.sources.size(); ++row) row_of_[task.sources[row]] = row;
  if (model_.spec.type == ModelType::kGcn && node_norm_.empty()) {
    node_norm_.resize(num_nodes);
    for (uint32_t v = 0; v < num_nodes; ++v) {
      const auto degree = static_cast<double>(input_.topology.degree(v));
      node_norm_[v] = static_cast<float>(1.0 / std::sqrt(degree + 1.0));
    }
  }
  if (!TransformsInput(model_.spec)) return Status::Ok();
  const uint64_t rows = task.sources.size();
  const uint32_t columns = TransformedColumns(model_.spec, task.layer);
  transformed_.Reset();
  table_ = RowsOf(transformed_.Get<float>(rows * columns), rows, columns);
  if (model_.spec.type == ModelType::kGat) {
    const uint64_t heads = model_.spec.heads;
    source_scores_ = RowsOf(transformed_.Get<float>(heads * rows), heads, rows);
    own_scores_ = RowsOf(transformed_.Get<float>(heads * rows), heads, rows);
  }
  const uint64_t work_per_row = uint64_t{ShapeOf(model_.spec, task.layer).in} * columns;
  const uint64_t step = std::clamp<uint64_t>(kChunkWork / work_per_row, 1, kMaxChunkRows);
  for (uint64_t begin = 0; begin < rows; begin += step) {
    if (!alive()) return EvaluationAborted();
    Transform(begin, std::min(rows, begin + step));
  }
  return Status::Ok();
}

void EvalLayer::Transform(uint64_t begin, uint64_t end) {
  chunk_.Reset();
  const ModelSpec& spec = model_.spec;
  const LayerParameters& mine = task_.parameters;
  const auto first = static_cast<int64_t>(begin);
  const auto count = static_cast<int64_t>(end - begin);
  const uint64_t in = ShapeOf(spec, task_.layer).in;
  const at::Tensor x = task_.layer == 0
                           ? OwnInput(task_.sources.subspan(begin, end - begin))
                           : RowsOf(task_.in.values<float>().data() + begin * in, end - begin, in);
  at::Tensor out = table_.narrow(0, first, count);
  if (spec.type == ModelType::kPinSage) {
    AffineInto(x, mine.projection, mine.projection_bias, &out);
    out.relu_();
    return;
  }
  AffineInto(x, mine.weight, mine.weight_bias, &out);
  if (spec.type != ModelType::kGat) return;
  source_scores_.narrow(1, first, count)
      .copy_(AttentionScores(out, mine.attention_source, &chunk_));
  own_scores_.narrow(1, first, count)
      .copy_(AttentionScores(out, mine.attention_destination, &chunk_));
}

uint64_t EvalLayer::ChunkEnd(uint64_t begin) const {
  const LayerShape shape = ShapeOf(model_.spec, task_.layer);
  const uint64_t gathered =
      TransformsInput(model_.spec) ? TransformedColumns(model_.spec, task_.layer) : shape.in;
  const uint64_t work_per_row = uint64_t{2} * shape.in * shape.out;
  uint64_t end = begin;
  for (uint64_t work = 0; end < task_.nodes.size() && end - begin < kMaxChunkRows; ++end) {
    work += work_per_row + input_.topology.degree(task_.nodes[end]) * gathered * kWorkPerGather;
    if (work > kChunkWork && end > begin) break;
  }
  return end;
}

EvalLayer::Neighbourhoods EvalLayer::NeighbourhoodsOf(std::span<const uint32_t> nodes) {
  const TopologyView& topology = input_.topology;
  const bool by_id = task_.layer == 0 && !TransformsInput(model_.spec);
  const auto row = [&](uint32_t node) { return by_id ? node : row_of_[node]; };
  Neighbourhoods block;
  block.rows = static_cast<uint32_t>(nodes.size());
  block.indptr = chunk_.Get<uint32_t>(uint64_t{block.rows} + 1);
  block.self = chunk_.Get<uint32_t>(block.rows);
  block.indptr[0] = 0;
  for (uint32_t r = 0; r < block.rows; ++r) {
    const uint64_t end = block.indptr[r] + topology.degree(nodes[r]);
    GNND_CHECK(end <= UINT32_MAX);
    block.indptr[r + 1] = static_cast<uint32_t>(end);
    block.self[r] = row(nodes[r]);
  }
  block.index = chunk_.Get<uint32_t>(block.indptr[block.rows]);
  for (uint32_t r = 0; r < block.rows; ++r) {
    const uint32_t* neighbours = topology.indices.data() + topology.indptr[nodes[r]];
    const uint32_t degree = block.indptr[r + 1] - block.indptr[r];
    for (uint32_t k = 0; k < degree; ++k) block.index[block.indptr[r] + k] = row(neighbours[k]);
  }
  return block;
}

// The rows of the layer's input that belong to `nodes`, copied together.
at::Tensor EvalLayer::OwnInput(std::span<const uint32_t> nodes) {
  const uint64_t columns = ShapeOf(model_.spec, task_.layer).in;
  uint32_t* own = chunk_.Get<uint32_t>(nodes.size());
  for (uint64_t r = 0; r < nodes.size(); ++r) own[r] = InputRow(nodes[r]);
  float* rows = chunk_.Get<float>(nodes.size() * columns);
  GatherRows(task_.in, {own, nodes.size()}, {rows, nodes.size() * columns});
  return RowsOf(rows, nodes.size(), columns);
}

// Weights of edges (where `weight` is not null) and what each row is multiplied by at the end.
void EvalLayer::Weigh(std::span<const uint32_t> nodes, const Neighbourhoods& block, float* weight,
                      float* scale) const {
  const TopologyView& topology = input_.topology;
  const bool gcn = model_.spec.type == ModelType::kGcn;
  for (uint32_t r = 0; r < block.rows; ++r) {
    const uint32_t v = nodes[r];
    const uint32_t degree = block.indptr[r + 1] - block.indptr[r];
    float* mine = weight == nullptr ? nullptr : weight + block.indptr[r];
    const uint64_t first = topology.indptr[v];
    if (gcn) {
      for (uint32_t k = 0; k < degree; ++k) mine[k] = node_norm_[topology.indices[first + k]];
      scale[r] = node_norm_[v];
      continue;
    }
    auto sum = static_cast<float>(degree);
    if (mine != nullptr) {
      sum = 0;
      for (uint32_t k = 0; k < degree; ++k) sum += mine[k] = input_.edge_weights[first + k];
    }
    scale[r] = sum > 0 ? 1.0F / sum : 0.0F;
  }
}

void EvalLayer::Aggregate(std::span<const uint32_t> nodes, float* out) {
  if (table_.defined()) {
    Gather(nodes, table_.const_data_ptr<float>(), out);
  } else {
    task_.in.Visited([&](auto elements) { Gather(nodes, elements.data(), out); });
  }
}

// Aggregates rows of `x`: the transformed rows, or the layer's input.
template <typename Element>
void EvalLayer::Gather(std::span<const uint32_t> nodes, const Element* x, float* out) {
  const Neighbourhoods block = NeighbourhoodsOf(nodes);
  const bool gcn = model_.spec.type == ModelType::kGcn;
  const bool weighted = gcn || !input_.edge_weights.empty();
  float* weight = weighted ? chunk_.Get<float>(block.indptr[block.rows]) : nullptr;
  float* scale = chunk_.Get<float>(block.rows);
  Weigh(nodes, block, weight, scale);
  GatherSum<float, Element> op;
  op.columns = ShapeOf(model_.spec, task_.layer).in;
  op.x = x;
  op.x_stride = op.columns;
  op.indptr = block.indptr;
  op.index = block.index;
  op.weight = weight;
  op.scale = scale;
  if (gcn) {
    op.self = op.x;
    op.self_stride = op.columns;
    op.self_index = block.self;
    op.self_weight = scale;
    op.self_rows = block.rows;
  }
  op.out = out;
  op.out_stride = op.columns;
  ParallelRows(block.rows, kGrainRows,
               [&op](uint32_t begin, uint32_t end) { RunGatherSum(op, begin, end); });
}

void EvalLayer::RunConvolution(const EvalChunk& chunk, at::Tensor* out) {
  const LayerParameters& mine = task_.parameters;
  const uint64_t rows = chunk.nodes.size();
  const uint32_t in = ShapeOf(model_.spec, task_.layer).in;
  const float* aggregated = chunk.kept;
  if (aggregated == nullptr) {
    float* to = chunk.keep_to != nullptr ? chunk.keep_to : chunk_.Get<float>(rows * in);
    Aggregate(chunk.nodes, to);
    aggregated = to;
  }
  AffineInto(RowsOf(aggregated, rows, in), mine.weight, mine.bias, out);
  if (mine.weight_self.defined()) {
    MatMul(OwnInput(chunk.nodes), mine.weight_self.t(), /*add=*/true, *out);
  }
}

void EvalLayer::RunAttention(const EvalChunk& chunk, at::Tensor* out) {
  const ModelSpec& spec = model_.spec;
  const LayerParameters& mine = task_.parameters;
  const uint64_t heads = spec.heads;
  const uint64_t rows = chunk.nodes.size();
  const uint64_t wide = TransformedColumns(spec, task_.layer);
  const Neighbourhoods block = NeighbourhoodsOf(chunk.nodes);
  AttentionInput input;
  input.source = table_;
  input.attention = mine.attention_source;
  AttentionTable table;
  table.indptr = block.indptr;
  table.index = block.index;
  table.self = block.self;
  table.num_dst = block.rows;
  if (spec.type == ModelType::kGat) {
    float* own = chunk_.Get<float>(heads * rows);
    const float* all = own_scores_.const_data_ptr<float>();
    for (uint64_t h = 0; h < heads; ++h) {
      for (uint64_t r = 0; r < rows; ++r) {
        own[h * rows + r] = all[h * task_.sources.size() + block.self[r]];
      }
    }
    table.source_score = source_scores_.const_data_ptr<float>();
    table.destination_score = own;
  } else {
    input.destination = RowsOf(chunk_.Get<float>(rows * wide), rows, wide);
    AffineInto(OwnInput(chunk.nodes), mine.weight_self, mine.weight_self_bias, &input.destination);
  }
  const bool averages = task_.layer + 1 == spec.num_layers;
  float* attended = averages ? chunk_.Get<float>(rows * wide) : chunk.out;
  AttendTable(input, table, &chunk_, attended);
  if (averages) {
    const at::Tensor by_head =
        RowsOf(attended, rows, wide).view({static_cast<int64_t>(rows), spec.heads, -1});
    at::mean_out(*out, by_head, 1);
  }
  out->add_(mine.bias);
}

void EvalLayer::Run(const EvalChunk& chunk) {
  chunk_.Reset();
  const ModelSpec& spec = model_.spec;
  const LayerParameters& mine = task_.parameters;
  const LayerShape shape = ShapeOf(spec, task_.layer);
  at::Tensor out = RowsOf(chunk.out, chunk.nodes.size(), shape.out);
  if (IsAttention(spec.type)) {
    RunAttention(chunk, &out);
  } else {
    RunConvolution(chunk, &out);
  }
  if (mine.residual.defined()) {
    MatMul(OwnInput(chunk.nodes), mine.residual.t(), /*add=*/true, out);
  } else if (spec.residual) {
    out.add_(OwnInput(chunk.nodes));
  }
  if (task_.layer + 1 == spec.num_layers) return;
  const auto pointer = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
  };
  FinishHiddenInPlace(spec, chunk.out, static_cast<uint32_t>(chunk.nodes.size()), shape.out,
                      pointer(mine.norm_scale), pointer(mine.norm_shift));
}

}  // namespace gnnd
