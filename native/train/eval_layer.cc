#include "train/eval_layer.h"

#include <ATen/ops/mean.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/base/check.h"
#include "core/kernels/spmm.h"
#include "train/affine.h"
#include "train/after_layer.h"
#include "train/attention.h"
#include "train/parallel.h"

namespace gnnd {
namespace {

constexpr uint32_t kGrainRows = 64;
constexpr uint32_t kGrainSums = 32;  // of whole neighbourhoods

at::Tensor RowsOf(const float* data, uint64_t rows, uint64_t columns) {
  return ViewOf(const_cast<float*>(data), static_cast<int64_t>(rows),
                static_cast<int64_t>(columns));
}

}  // namespace

void ScatterRows(const float* rows, std::span<const uint32_t> nodes, uint64_t columns, float* to) {
  ParallelRows(static_cast<uint32_t>(nodes.size()), kGrainRows, [&](uint32_t begin, uint32_t end) {
    for (uint64_t r = begin; r < end; ++r) {
      std::copy_n(rows + r * columns, columns, to + nodes[r] * columns);
    }
  });
}

uint64_t EvalLayer::BlockEnd(const LayerTask& task, std::span<const uint32_t> nodes,
                             uint64_t begin) const {
  const uint64_t columns = task.transforms_first ? TransformedColumns(model_.spec, task.layer)
                                                 : ShapeOf(model_.spec, task.layer).in;
  const uint64_t last = std::min<uint64_t>(nodes.size(), begin + kEvalBlockRows);
  uint64_t end = begin;
  for (uint64_t floats = 0; end < last; ++end) {
    floats += options_.topology.degree(nodes[end]) * columns;
    if (floats > kEvalBlockFloats && end > begin) break;
  }
  return end;
}

void EvalLayer::Transform(const LayerTask& task, std::span<const uint32_t> nodes) {
  block_.Reset();
  const ModelSpec& spec = model_.spec;
  const LayerParameters& mine = task.parameters;
  const uint64_t columns = TransformedColumns(spec, task.layer);
  float* to = task.transformed + nodes.front() * columns;
  const bool together = Consecutive(nodes);
  at::Tensor out =
      RowsOf(together ? to : block_.Get<float>(nodes.size() * columns), nodes.size(), columns);
  const at::Tensor x = OwnInput(task, nodes);
  if (spec.type == ModelType::kPinSage) {
    RunAffine({x, mine.projection, {}, {}, {}, mine.projection_bias, out}, &block_);
    out.relu_();
  } else {
    RunAffine({x, mine.weight, {}, {}, {}, mine.weight_bias, out}, &block_);
  }
  if (!together) ScatterRows(out.const_data_ptr<float>(), nodes, columns, task.transformed);
  if (spec.type != ModelType::kGat) return;
  const uint64_t num_nodes = options_.topology.num_nodes();
  for (uint64_t side = 0; side < 2; ++side) {
    const at::Tensor scores = AttentionScores(
        out, side == 0 ? mine.attention_source : mine.attention_destination, &block_);
    for (uint64_t h = 0; h < spec.heads; ++h) {
      const float* from = scores.const_data_ptr<float>() + h * nodes.size();
      float* head = task.scores + (side * spec.heads + h) * num_nodes;
      for (uint64_t r = 0; r < nodes.size(); ++r) head[nodes[r]] = from[r];
    }
  }
}

EvalLayer::Neighbourhoods EvalLayer::NeighbourhoodsOf(std::span<const uint32_t> nodes) {
  const TopologyView& topology = options_.topology;
  Neighbourhoods block;
  block.rows = static_cast<uint32_t>(nodes.size());
  block.self = nodes.data();
  uint32_t* indptr = block_.Get<uint32_t>(nodes.size() + 1);
  indptr[0] = 0;
  for (uint32_t r = 0; r < block.rows; ++r) {
    const uint64_t end = indptr[r] + topology.degree(nodes[r]);
    GNND_CHECK(end <= UINT32_MAX);
    indptr[r + 1] = static_cast<uint32_t>(end);
  }
  block.indptr = indptr;
  if (Consecutive(nodes)) {
    block.index = topology.indices.data() + topology.indptr[nodes.front()];
    return block;
  }
  uint32_t* index = block_.Get<uint32_t>(indptr[block.rows]);
  ParallelRows(block.rows, kGrainRows, [&](uint32_t begin, uint32_t end) {
    for (uint32_t r = begin; r < end; ++r) {
      std::copy_n(topology.indices.data() + topology.indptr[nodes[r]], indptr[r + 1] - indptr[r],
                  index + indptr[r]);
    }
  });
  block.index = index;
  return block;
}

// The rows of the layer's input that belong to `nodes`, together.
at::Tensor EvalLayer::OwnInput(const LayerTask& task, std::span<const uint32_t> nodes) {
  const uint64_t columns = ShapeOf(model_.spec, task.layer).in;
  if (task.in.type() == FeatureType::kFloat32 && Consecutive(nodes)) {
    return RowsOf(task.in.values<float>().data() + nodes.front() * columns, nodes.size(), columns);
  }
  return GatheredRows<float>(task.in, nodes, &block_);
}

// Weights of edges (where `weight` is not null) and what each row is multiplied by at the end.
void EvalLayer::Weigh(std::span<const uint32_t> nodes, const Neighbourhoods& block, float* weight,
                      float* scale) {
  const TopologyView& topology = options_.topology;
  const bool gcn = model_.spec.type == ModelType::kGcn;
  if (gcn && node_norm_.empty()) {
    node_norm_.resize(topology.num_nodes());
    for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
      const auto degree = static_cast<double>(topology.degree(v));
      node_norm_[v] = static_cast<float>(1.0 / std::sqrt(degree + 1.0));
    }
  }
  ParallelRows(block.rows, kGrainRows, [&](uint32_t begin, uint32_t end) {
    for (uint32_t r = begin; r < end; ++r) {
      const uint32_t first = block.indptr[r];
      const uint32_t degree = block.indptr[r + 1] - first;
      float* mine = weight == nullptr ? nullptr : weight + first;
      if (gcn) {
        for (uint32_t k = 0; k < degree; ++k) mine[k] = node_norm_[block.index[first + k]];
        scale[r] = node_norm_[nodes[r]];
        continue;
      }
      auto sum = static_cast<float>(degree);
      if (mine != nullptr) {
        const float* given = options_.edge_weights.data() + topology.indptr[nodes[r]];
        sum = 0;
        for (uint32_t k = 0; k < degree; ++k) sum += mine[k] = given[k];
      }
      scale[r] = sum > 0 ? 1.0F / sum : 0.0F;
    }
  });
}

// Aggregates rows of `x`, which lie by node id.
template <typename Element>
void EvalLayer::Gather(std::span<const uint32_t> nodes, const Element* x, uint32_t columns,
                       float* out) {
  const Neighbourhoods block = NeighbourhoodsOf(nodes);
  const bool gcn = model_.spec.type == ModelType::kGcn;
  const bool weighted = gcn || !options_.edge_weights.empty();
  float* weight = weighted ? block_.Get<float>(block.indptr[block.rows]) : nullptr;
  float* scale = block_.Get<float>(block.rows);
  Weigh(nodes, block, weight, scale);
  Spmm<float, Element> op;
  op.columns = columns;
  op.x = x;
  op.x_stride = columns;
  op.indptr = block.indptr;
  op.index = block.index;
  op.weight = weight;
  op.scale = scale;
  if (gcn) {
    op.self = op.x;
    op.self_stride = columns;
    op.self_index = block.self;
    op.self_weight = scale;
    op.self_rows = block.rows;
  }
  op.out = out;
  op.out_stride = columns;
  ParallelSums(block.rows, kGrainSums,
               [&op](uint32_t begin, uint32_t end) { RunSpmm(op, begin, end); });
}

// What the layer multiplies by its weight: [nodes.size(), in].
const float* EvalLayer::Aggregated(const LayerTask& task, std::span<const uint32_t> nodes) {
  const uint32_t columns = ShapeOf(model_.spec, task.layer).in;
  const auto is_there = [&task](uint32_t node) {
    return std::atomic_ref(task.is_kept[node]).load(std::memory_order_acquire) != 0;
  };
  const bool kept = task.kept != nullptr && std::ranges::all_of(nodes, is_there);
  if (kept && Consecutive(nodes)) return task.kept + uint64_t{nodes.front()} * columns;
  float* rows = block_.Get<float>(nodes.size() * columns);
  if (kept) {
    ParallelRows(
        static_cast<uint32_t>(nodes.size()), kGrainRows, [&](uint32_t begin, uint32_t end) {
          for (uint64_t r = begin; r < end; ++r) {
            std::copy_n(task.kept + uint64_t{nodes[r]} * columns, columns, rows + r * columns);
          }
        });
    return rows;
  }
  if (model_.spec.type == ModelType::kPinSage) {
    Gather(nodes, task.transformed, columns, rows);
  } else {
    task.in.Visited([&](auto elements) { Gather(nodes, elements.data(), columns, rows); });
  }
  if (task.kept == nullptr) return rows;
  ScatterRows(rows, nodes, columns, task.kept);
  for (const uint32_t node : nodes) {
    std::atomic_ref(task.is_kept[node]).store(1, std::memory_order_release);
  }
  return rows;
}

void EvalLayer::RunConvolution(const LayerTask& task, std::span<const uint32_t> nodes,
                               at::Tensor* out) {
  const LayerParameters& mine = task.parameters;
  const uint64_t rows = nodes.size();
  const LayerShape shape = ShapeOf(model_.spec, task.layer);
  const bool pinsage = model_.spec.type == ModelType::kPinSage;
  if (task.transforms_first && !pinsage) {
    Gather(nodes, task.transformed, shape.out, out->data_ptr<float>());
    if (mine.bias.defined()) out->add_(mine.bias);
    if (mine.weight_self.defined()) {
      RunAffine({OwnInput(task, nodes), mine.weight_self, {}, {}, *out, {}, *out}, &block_);
    }
    return;
  }
  AffineOp op{
      RowsOf(Aggregated(task, nodes), rows, shape.in), mine.weight, {}, {}, {}, mine.bias, *out};
  if (mine.weight_self.defined()) {
    op.x_self = OwnInput(task, nodes);
    op.weight_self = mine.weight_self;
  }
  RunAffine(op, &block_);
}

void EvalLayer::RunAttention(const LayerTask& task, std::span<const uint32_t> nodes,
                             at::Tensor* out) {
  const ModelSpec& spec = model_.spec;
  const LayerParameters& mine = task.parameters;
  const uint64_t heads = spec.heads;
  const uint64_t rows = nodes.size();
  const uint64_t num_nodes = options_.topology.num_nodes();
  const uint64_t wide = TransformedColumns(spec, task.layer);
  const Neighbourhoods block = NeighbourhoodsOf(nodes);
  AttentionInput input;
  input.source = RowsOf(task.transformed, num_nodes, wide);
  input.attention = mine.attention_source;
  AttentionTable table;
  table.indptr = block.indptr;
  table.index = block.index;
  table.self = block.self;
  table.num_dst = block.rows;
  if (spec.type == ModelType::kGat) {
    float* own = block_.Get<float>(heads * rows);
    const float* all = task.scores + heads * num_nodes;
    for (uint64_t h = 0; h < heads; ++h) {
      for (uint64_t r = 0; r < rows; ++r) own[h * rows + r] = all[h * num_nodes + nodes[r]];
    }
    table.source_score = task.scores;
    table.destination_score = own;
  } else {
    input.destination = RowsOf(block_.Get<float>(rows * wide), rows, wide);
    RunAffine({OwnInput(task, nodes),
               mine.weight_self,
               {},
               {},
               {},
               mine.weight_self_bias,
               input.destination},
              &block_);
  }
  const bool averages = task.layer + 1 == spec.num_layers;
  float* attended = averages ? block_.Get<float>(rows * wide) : out->data_ptr<float>();
  AttendTable(input, table, &block_, attended);
  if (averages) {
    const at::Tensor by_head =
        RowsOf(attended, rows, wide).view({static_cast<int64_t>(rows), spec.heads, -1});
    at::mean_out(*out, by_head, 1);
  }
  out->add_(mine.bias);
}

void EvalLayer::Run(const LayerTask& task, std::span<const uint32_t> nodes, float* to) {
  block_.Reset();
  const ModelSpec& spec = model_.spec;
  const LayerParameters& mine = task.parameters;
  const LayerShape shape = ShapeOf(spec, task.layer);
  at::Tensor out = RowsOf(to, nodes.size(), shape.out);
  if (IsAttention(spec.type)) {
    RunAttention(task, nodes, &out);
  } else {
    RunConvolution(task, nodes, &out);
  }
  if (mine.residual.defined()) {
    RunAffine({OwnInput(task, nodes), mine.residual, {}, {}, out, {}, out}, &block_);
  } else if (spec.residual) {
    out.add_(OwnInput(task, nodes));
  }
  if (task.layer + 1 == spec.num_layers) return;
  const auto pointer = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
  };
  FinishLayerInPlace(spec, to, static_cast<uint32_t>(nodes.size()), shape.out,
                     pointer(mine.norm_scale), pointer(mine.norm_shift));
}

}  // namespace gnnd
