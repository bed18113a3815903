#include "train/evaluate/eval_layer.h"

#include <ATen/ops/mean.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <type_traits>

#include "core/kernels/spmm.h"
#include "train/ops/after_layer.h"
#include "train/ops/attention.h"
#include "train/ops/operators.h"
#include "train/ops/ops.h"
#include "train/ops/parallel.h"

namespace gnnd {
namespace {

constexpr uint32_t kGrainRows = 64;

// A row's weights times a power of two, by which the largest lies in [1, 2): a weighted mean has
// no unit, and sums of weights near the ends of float32 would leave it. Where they do not, the mean
// has the same bits in any such unit.
void CopyInUnit(std::span<const float> weights, float* out) {
  float largest = 0.0F;
  for (const float weight : weights) largest = std::max(largest, weight);
  const double unit = largest > 0.0F ? std::ldexp(1.0, -std::ilogb(largest)) : 1.0;
  for (const float weight : weights) *out++ = static_cast<float>(unit * double{weight});
}

}  // namespace

void EvalLayer::Begin() {
  input_->memory()->Reset();
  host_.Reset();
}

at::Tensor EvalLayer::View(float* rows, uint64_t count, uint64_t columns) const {
  return ViewOf(rows, static_cast<int64_t>(count), static_cast<int64_t>(columns),
                input_->memory()->device().where);
}

RowTable EvalLayer::Transformed(const LayerTask& task) const {
  const uint64_t columns = TransformedColumns(model_.spec, task.layer);
  return {std::span<const float>(task.transformed, options_.topology.num_nodes() * columns),
          columns};
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
  Begin();
  const ModelSpec& spec = model_.spec;
  const LayerParameters& mine = task.parameters;
  const uint64_t columns = TransformedColumns(spec, task.layer);
  const uint64_t floats = nodes.size() * columns;
  float* const to = task.transformed + nodes.front() * columns;
  const bool together = Consecutive(nodes);
  float* const rows = together ? to : host_.Get<float>(floats);
  at::Tensor out = View(input_->PlaceOf(rows, floats), nodes.size(), columns);
  const at::Tensor x = input_->Rows(task.in, nodes);
  if (spec.type == ModelType::kPinSage) {
    Affine({x, mine.projection, {}, {}, {}, mine.projection_bias, out});
    out.relu_();
  } else {
    Affine({x, mine.weight, {}, {}, {}, mine.weight_bias, out});
  }
  input_->Bring(out.const_data_ptr<float>(), floats, rows);
  if (!together) ScatterRows(rows, nodes, columns, task.transformed);
  if (spec.type != ModelType::kGat) return;
  const uint64_t num_nodes = options_.topology.num_nodes();
  for (uint64_t side = 0; side < 2; ++side) {
    const at::Tensor scores = AttentionScores(
        out, side == 0 ? mine.attention_source : mine.attention_destination, input_->memory());
    const float* from =
        input_->Seen(scores.const_data_ptr<float>(), spec.heads * nodes.size(), &host_);
    for (uint64_t h = 0; h < spec.heads; ++h, from += nodes.size()) {
      float* head = task.scores + (side * spec.heads + h) * num_nodes;
      for (uint64_t r = 0; r < nodes.size(); ++r) head[nodes[r]] = from[r];
    }
  }
}

float* EvalLayer::PlaceOf(const EvalPart& part, uint64_t count, float* place) {
  return part.is_aside ? host_.Get<float>(count) : place;
}

void EvalLayer::Join(const EvalPart& part, const float* from, uint64_t count, float* place) {
  if (part.is_aside) input_->Join(from, count, place);
}

// GCN: what edges to and from such nodes are multiplied by.
std::span<const float> EvalLayer::Norms(std::span<const uint32_t> nodes) {
  const TopologyView& topology = options_.topology;
  if (node_norm_.empty()) {
    node_norm_.resize(topology.num_nodes());
    for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
      const auto degree = static_cast<double>(topology.degree(v));
      node_norm_[v] = static_cast<float>(1.0 / std::sqrt(degree + 1.0));
    }
  }
  float* norms = host_.Get<float>(nodes.size());
  for (uint64_t r = 0; r < nodes.size(); ++r) norms[r] = node_norm_[nodes[r]];
  return {norms, nodes.size()};
}

// Of a part's edges in their order: GCN's other factor, else the graph's own.
std::span<const float> EvalLayer::EdgeWeights(const EvalPart& part) {
  const TopologyView& topology = options_.topology;
  const bool gcn = model_.spec.type == ModelType::kGcn;
  const std::span<uint64_t> starts(host_.Get<uint64_t>(part.nodes.size()), part.nodes.size());
  uint64_t count = 0;
  for (uint32_t r = 0; r < part.rows(); ++r) {
    starts[r] = count;
    count += topology.degree(part.nodes[r]);
  }
  float* const weights = host_.Get<float>(count);
  ParallelRows(part.rows(), kGrainRows, [&](uint32_t begin, uint32_t end) {
    for (uint32_t r = begin; r < end; ++r) {
      const uint64_t first = topology.indptr[part.nodes[r]];
      const uint64_t degree = topology.degree(part.nodes[r]);
      float* const mine = weights + starts[r];
      if (gcn) {
        const uint32_t* const sources = topology.indices.data() + first;
        for (uint64_t k = 0; k < degree; ++k) mine[k] = node_norm_[sources[k]];
      } else {
        CopyInUnit(options_.edge_weights.subspan(first, degree), mine);
      }
    }
  });
  return {weights, count};
}

// The part's rows of `out`.
template <typename Element>
void EvalLayer::SumPart(const EvalPart& part, const Element* x, float* out) {
  Workspace* const memory = part.memory;
  const RowOperators<float>& operators = memory->operators().rows<float>();
  const uint64_t columns = part.x.dim();
  const bool gcn = model_.spec.type == ModelType::kGcn;
  const float* scale = nullptr;
  const float* weight = nullptr;
  if (gcn) scale = input_->Given(Norms(part.nodes), memory);
  if (gcn || !options_.edge_weights.empty()) weight = input_->Given(EdgeWeights(part), memory);
  if (!gcn) {
    auto* const means = memory->Get<float>(part.rows());
    operators.mean_scales({part.indptr, weight, part.rows(), means, nullptr}, memory);
    scale = means;
  }
  Spmm<float, Element> op;
  op.columns = static_cast<uint32_t>(columns);
  op.x = x;
  op.x_stride = columns;
  op.indptr = part.indptr;
  op.index = part.index;
  op.weight = weight;
  op.scale = scale;
  if (gcn) {
    op.self = op.x;
    op.self_stride = columns;
    op.self_index = part.self;
    op.self_weight = scale;
    op.self_rows = part.rows();
  }
  float* const place = out + part.first * columns;
  op.out = PlaceOf(part, part.rows() * columns, place);
  op.out_stride = columns;
  if constexpr (std::is_same_v<Element, Half>) {
    operators.sum_halves(op, part.rows(), memory);
  } else {
    operators.sum_edges(op, part.rows(), memory);
  }
  Join(part, op.out, part.rows() * columns, place);
}

// Aggregates rows of the table: [nodes.size(), table.dim()].
void EvalLayer::Sum(const RowTable& table, std::span<const uint32_t> nodes, float* out) {
  input_->ForParts(table, nodes, /*heads=*/0, [&](const EvalPart& part) {
    part.x.Visited([&](auto elements) { SumPart(part, elements.data(), out); });
  });
}

// What the layer multiplies by its weight: [nodes.size(), in].
at::Tensor EvalLayer::Aggregated(const LayerTask& task, std::span<const uint32_t> nodes) {
  const uint64_t columns = ShapeOf(model_.spec, task.layer).in;
  const auto is_there = [&task](uint32_t node) {
    return std::atomic_ref(task.is_kept[node]).load(std::memory_order_acquire) != 0;
  };
  if (task.kept != nullptr && std::ranges::all_of(nodes, is_there)) {
    const std::span<const float> kept(task.kept, options_.topology.num_nodes() * columns);
    return input_->Rows(RowTable(kept, columns), nodes);
  }
  const uint64_t floats = nodes.size() * columns;
  float* const rows = input_->memory()->Get<float>(floats);
  Sum(model_.spec.type == ModelType::kPinSage ? Transformed(task) : task.in, nodes, rows);
  if (task.kept != nullptr) {
    ScatterRows(input_->Seen(rows, floats, &host_), nodes, columns, task.kept);
    for (const uint32_t node : nodes) {
      std::atomic_ref(task.is_kept[node]).store(1, std::memory_order_release);
    }
  }
  return View(rows, nodes.size(), columns);
}

void EvalLayer::RunConvolution(const LayerTask& task, std::span<const uint32_t> nodes,
                               at::Tensor* out) {
  const LayerParameters& mine = task.parameters;
  const bool pinsage = model_.spec.type == ModelType::kPinSage;
  if (task.transforms_first && !pinsage) {
    Sum(Transformed(task), nodes, out->data_ptr<float>());
    if (mine.bias.defined()) out->add_(mine.bias);
    if (mine.weight_self.defined()) {
      Affine({input_->Rows(task.in, nodes), mine.weight_self, {}, {}, *out, {}, *out});
    }
    return;
  }
  AffineOp op{Aggregated(task, nodes), mine.weight, {}, {}, {}, mine.bias, *out};
  if (mine.weight_self.defined()) {
    op.x_self = input_->Rows(task.in, nodes);
    op.weight_self = mine.weight_self;
  }
  Affine(op);
}

// A matrix where the host's operators read it.
at::Tensor EvalLayer::SeenByHost(const at::Tensor& matrix) {
  const float* const seen =
      input_->Seen(matrix.const_data_ptr<float>(), static_cast<uint64_t>(matrix.numel()), &host_);
  return ViewOf(const_cast<float*>(seen), matrix.size(0), matrix.size(1));
}

// The part's rows of `out`; `destination` are the block's own (GATv2).
void EvalLayer::AttendPart(const LayerTask& task, const EvalPart& part,
                           const at::Tensor& destination, float* out) {
  const uint64_t heads = model_.spec.heads;
  const uint64_t num_nodes = options_.topology.num_nodes();
  const uint64_t wide = part.x.dim();
  const uint64_t rows = part.rows();
  const auto where = part.memory->device().where;
  AttentionInput input;
  auto* const source = const_cast<float*>(part.x.values<float>().data());
  input.source =
      ViewOf(source, static_cast<int64_t>(part.x.num_rows()), static_cast<int64_t>(wide), where);
  input.attention = task.parameters.attention_source;
  AttentionTable table;
  table.indptr = part.indptr;
  table.index = part.index;
  table.self = part.self;
  table.num_dst = part.rows();
  table.num_edges = part.num_edges;
  // Of these nodes, by head; the first `heads` are sources', the others destinations'.
  const auto scores_of = [&](uint64_t side, std::span<const uint32_t> nodes) {
    float* const scores = host_.Get<float>(heads * nodes.size());
    for (uint64_t h = 0; h < heads; ++h) {
      const float* const all = task.scores + (side * heads + h) * num_nodes;
      for (uint64_t r = 0; r < nodes.size(); ++r) scores[h * nodes.size() + r] = all[nodes[r]];
    }
    return input_->Given({scores, heads * nodes.size()}, part.memory);
  };
  if (model_.spec.type == ModelType::kGat) {
    table.source_score = part.sources.empty() ? task.scores : scores_of(0, part.sources);
    table.destination_score = scores_of(1, part.nodes);
  } else {
    input.destination =
        destination.narrow(0, static_cast<int64_t>(part.first), static_cast<int64_t>(rows));
    if (part.is_aside) {
      input.destination = SeenByHost(input.destination);
      input.attention = SeenByHost(input.attention);
    }
  }
  float* const place = out + part.first * wide;
  float* const to = PlaceOf(part, rows * wide, place);
  AttendTable(input, table, part.memory, to);
  Join(part, to, rows * wide, place);
}

void EvalLayer::RunAttention(const LayerTask& task, std::span<const uint32_t> nodes,
                             at::Tensor* out) {
  const ModelSpec& spec = model_.spec;
  const LayerParameters& mine = task.parameters;
  const uint64_t rows = nodes.size();
  const RowTable transformed = Transformed(task);
  const uint64_t wide = transformed.dim();
  Workspace* const memory = input_->memory();
  at::Tensor destination;
  if (spec.type == ModelType::kGatV2) {
    destination = View(memory->Get<float>(rows * wide), rows, wide);
    Affine({input_->Rows(task.in, nodes),
            mine.weight_self,
            {},
            {},
            {},
            mine.weight_self_bias,
            destination});
  }
  const bool averages = task.layer + 1 == spec.num_layers;
  float* attended = averages ? memory->Get<float>(rows * wide) : out->data_ptr<float>();
  input_->ForParts(transformed, nodes, spec.heads,
                   [&](const EvalPart& part) { AttendPart(task, part, destination, attended); });
  if (averages) {
    const at::Tensor by_head =
        View(attended, rows, wide).view({static_cast<int64_t>(rows), spec.heads, -1});
    at::mean_out(*out, by_head, 1);
  }
  out->add_(mine.bias);
}

void EvalLayer::Run(const LayerTask& task, std::span<const uint32_t> nodes, float* to) {
  Begin();
  const ModelSpec& spec = model_.spec;
  const LayerParameters& mine = task.parameters;
  const uint64_t columns = ShapeOf(spec, task.layer).out;
  const uint64_t floats = nodes.size() * columns;
  at::Tensor out = View(input_->PlaceOf(to, floats), nodes.size(), columns);
  if (IsAttention(spec.type)) {
    RunAttention(task, nodes, &out);
  } else {
    RunConvolution(task, nodes, &out);
  }
  if (mine.residual.defined()) {
    Affine({input_->Rows(task.in, nodes), mine.residual, {}, {}, out, {}, out});
  } else if (spec.residual) {
    out.add_(input_->Rows(task.in, nodes));
  }
  if (task.layer + 1 < spec.num_layers) {
    FinishLayerInPlace(spec, out, mine.norm_scale, mine.norm_shift, input_->memory());
  }
  input_->Bring(out.const_data_ptr<float>(), floats, to);
}

}  // namespace gnnd
