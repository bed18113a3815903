#include "train/evaluate/eval_layer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <type_traits>

#include "core/kernels/spmm.h"
#include "train/layers/layers.h"
#include "train/ops/after_layer.h"
#include "train/ops/attention.h"
#include "train/ops/operators.h"
#include "train/ops/ops.h"
#include "train/ops/parallel.h"

namespace gnnd {
namespace {

constexpr uint32_t kGrainRows = 64;

// Scales a row's weights by a power of two so that the largest lies in [1, 2): a weighted mean does
// not depend on scale, but sums of very large or small weights would overflow or underflow float32.
// Otherwise the mean's bits are the same at any such scale.
void CopyInUnit(std::span<const float> weights, float* out) {
  float largest = 0.0F;
  for (const float weight : weights) largest = std::max(largest, weight);
  const double unit = largest > 0.0F ? std::ldexp(1.0, -std::ilogb(largest)) : 1.0;
  for (const float weight : weights) *out++ = static_cast<float>(unit * double{weight});
}

}  // namespace

void EvalLayer::Begin(const LayerTask& task, std::span<const uint32_t> nodes) {
  task_ = &task;
  nodes_ = nodes;
  input_->memory()->Reset();
  host_.Reset();
}

at::Tensor EvalLayer::View(float* rows, uint64_t count, uint64_t columns) const {
  return ViewOf(rows, static_cast<int64_t>(count), static_cast<int64_t>(columns),
                input_->memory()->device().where);
}

at::Tensor EvalLayer::Empty(uint64_t columns) {
  return View(memory()->Get<float>(nodes_.size() * columns), nodes_.size(), columns);
}

RowTable EvalLayer::Transformed() const {
  const uint64_t columns = TransformedColumns(model_.spec, task_->layer);
  const uint64_t floats = options_.topology.num_nodes() * columns;
  return {std::span<const float>(task_->transformed, floats), columns};
}

uint64_t EvalLayer::BlockEnd(const LayerTask& task, std::span<const uint32_t> nodes,
                             uint64_t begin) const {
  const uint64_t columns = task.transforms_first ? TransformedColumns(model_.spec, task.layer)
                                                 : ShapeOf(model_.spec, task.layer).in;
  const uint64_t last = std::min<uint64_t>(nodes.size(), begin + kEvalBlockRows);
  uint64_t end = begin;
  for (uint64_t floats = 0; end < last; ++end) {
    floats += task.graph->topology.degree(nodes[end]) * columns;
    if (floats > kEvalBlockFloats && end > begin) break;
  }
  return end;
}

void EvalLayer::Transform(const LayerTask& task, std::span<const uint32_t> nodes) {
  Begin(task, nodes);
  const uint64_t columns = TransformedColumns(model_.spec, task.layer);
  const uint64_t floats = nodes.size() * columns;
  float* const to = task.transformed + nodes.front() * columns;
  const bool together = Consecutive(nodes);
  float* const rows = together ? to : host_.Get<float>(floats);
  const at::Tensor out = View(input_->PlaceOf(rows, floats), nodes.size(), columns);
  LayerOf(model_.spec.type).TransformExactly(this, out);
  input_->Bring(out.const_data_ptr<float>(), floats, rows);
  if (!together) ScatterRows(rows, nodes, columns, task.transformed);
}

void EvalLayer::PutScores(Side side, const at::Tensor& scores) {
  const uint64_t heads = model_.spec.heads;
  const uint64_t num_nodes = options_.topology.num_nodes();
  const float* from = input_->Seen(scores.const_data_ptr<float>(), heads * nodes_.size(), &host_);
  for (uint64_t h = 0; h < heads; ++h, from += nodes_.size()) {
    float* head = task_->scores + (static_cast<uint64_t>(side) * heads + h) * num_nodes;
    for (uint64_t r = 0; r < nodes_.size(); ++r) head[nodes_[r]] = from[r];
  }
}

float* EvalLayer::PlaceOf(const EvalPart& part, uint64_t count, float* place) {
  return part.is_aside ? host_.Get<float>(count) : place;
}

void EvalLayer::Join(const EvalPart& part, const float* from, uint64_t count, float* place) {
  if (part.is_aside) input_->Join(from, count, place);
}

// Factors of edges to and from these nodes in normalised sums.
std::span<const float> EvalLayer::Norms(std::span<const uint32_t> nodes) {
  const TopologyView& topology = task_->graph->topology;
  if (normed_ != task_->graph) {
    normed_ = task_->graph;
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

// Weights of a part's edges in their order: the sources' norms, else the graph's own.
std::span<const float> EvalLayer::EdgeWeights(const EvalPart& part) {
  const TopologyView& topology = task_->graph->topology;
  const bool gcn = KindOf(model_.spec.type).gathering == Gathering::kNormalized;
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
        CopyInUnit(task_->graph->edge_weights.subspan(first, degree), mine);
      }
    }
  });
  return {weights, count};
}

// Sums the part's rows into `out`.
template <typename Element>
void EvalLayer::SumPart(const EvalPart& part, const Element* x, float* out) {
  Workspace* const memory = part.memory;
  const RowOperators<float>& operators = memory->operators().rows<float>();
  const uint64_t columns = part.x.dim();
  const bool gcn = KindOf(model_.spec.type).gathering == Gathering::kNormalized;
  const bool mean = KindOf(model_.spec.type).gathering == Gathering::kMean;
  const float* scale = nullptr;
  const float* weight = nullptr;
  if (gcn) scale = input_->Given(Norms(part.nodes), memory);
  if (gcn || (mean && !task_->graph->edge_weights.empty())) {
    weight = input_->Given(EdgeWeights(part), memory);
  }
  if (mean) {
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

// Sums gathered rows of the table into `out`: [nodes_.size(), table.dim()].
void EvalLayer::Sum(const RowTable& table, float* out) {
  input_->ForParts({task_->graph->topology, table, nodes_}, /*heads=*/0, [&](const EvalPart& part) {
    part.x.Visited([&](auto elements) { SumPart(part, elements.data(), out); });
  });
}

void EvalLayer::GatherTransformed(const at::Tensor& out) {
  Sum(Transformed(), out.data_ptr<float>());
}

at::Tensor EvalLayer::Gathered() {
  const LayerTask& task = *task_;
  const uint64_t columns = ShapeOf(model_.spec, task.layer).in;
  const auto is_there = [&task](uint32_t node) {
    return std::atomic_ref(task.is_kept[node]).load(std::memory_order_acquire) != 0;
  };
  if (task.kept != nullptr && std::ranges::all_of(nodes_, is_there)) {
    const std::span<const float> kept(task.kept, options_.topology.num_nodes() * columns);
    return input_->Rows(RowTable(kept, columns), nodes_);
  }
  const at::Tensor rows = Empty(columns);
  auto* const floats = rows.data_ptr<float>();
  Sum(task.in, floats);
  if (task.kept != nullptr) {
    ScatterRows(input_->Seen(floats, nodes_.size() * columns, &host_), nodes_, columns, task.kept);
    for (const uint32_t node : nodes_) {
      std::atomic_ref(task.is_kept[node]).store(1, std::memory_order_release);
    }
  }
  return rows;
}

// A matrix as the host's operators read it.
at::Tensor EvalLayer::SeenByHost(const at::Tensor& matrix) {
  const float* const seen =
      input_->Seen(matrix.const_data_ptr<float>(), static_cast<uint64_t>(matrix.numel()), &host_);
  return ViewOf(const_cast<float*>(seen), matrix.size(0), matrix.size(1));
}

// The scores of these nodes, head by head, for operators over `memory`.
const float* EvalLayer::ScoresOf(Side side, std::span<const uint32_t> nodes, Workspace* memory) {
  const uint64_t heads = model_.spec.heads;
  float* const scores = host_.Get<float>(heads * nodes.size());
  for (uint64_t h = 0; h < heads; ++h) {
    const float* const all =
        task_->scores + (static_cast<uint64_t>(side) * heads + h) * options_.topology.num_nodes();
    for (uint64_t r = 0; r < nodes.size(); ++r) scores[h * nodes.size() + r] = all[nodes[r]];
  }
  return input_->Given({scores, heads * nodes.size()}, memory);
}

// The input of the part's operators; `destination` belongs to the whole block.
AttentionInput EvalLayer::AttentionOf(const EvalPart& part, const at::Tensor& destination) {
  AttentionInput input;
  auto* const source = const_cast<float*>(part.x.values<float>().data());
  input.source = ViewOf(source, static_cast<int64_t>(part.x.num_rows()),
                        static_cast<int64_t>(part.x.dim()), part.memory->device().where);
  input.attention = parameters()[TensorRole::kAttentionSource];
  if (KindOf(model_.spec.type).gathering == Gathering::kDot) {
    const int64_t wide = destination.size(1);  // width of keys; a row is a key, then a value
    input.key = input.source.narrow(1, 0, wide);
    input.source = input.source.narrow(1, wide, wide);
    input.heads = model_.spec.heads;
  }
  if (!destination.defined()) return input;
  input.destination = destination.narrow(0, static_cast<int64_t>(part.first), part.rows());
  if (part.is_aside) {
    input.destination = SeenByHost(input.destination);
    input.attention = SeenByHost(input.attention);
  }
  return input;
}

// Attends for the part's rows of `out`.
void EvalLayer::AttendPart(const EvalPart& part, const at::Tensor& destination, float* out) {
  const AttentionInput input = AttentionOf(part, destination);
  AttentionTable table;
  table.indptr = part.indptr;
  table.index = part.index;
  table.self = part.self;
  table.num_dst = part.rows();
  table.num_edges = part.num_edges;
  if (!destination.defined()) {
    table.source_score =
        part.sources.empty() ? task_->scores : ScoresOf(Side::kSource, part.sources, part.memory);
    table.destination_score = ScoresOf(Side::kDestination, part.nodes, part.memory);
  }
  const uint64_t wide = SizeOf(LayerSize::kWide, model_.spec, task_->layer);
  float* const place = out + part.first * wide;
  float* const to = PlaceOf(part, part.rows() * wide, place);
  AttendTable(input, table, part.memory, to);
  Join(part, to, part.rows() * wide, place);
}

void EvalLayer::Attend(const at::Tensor& destination, const at::Tensor& out) {
  const RowTable table = Transformed();
  input_->ForParts(
      {task_->graph->topology, table, nodes_}, model_.spec.heads,
      [&](const EvalPart& part) { AttendPart(part, destination, out.data_ptr<float>()); });
}

void EvalLayer::Run(const LayerTask& task, std::span<const uint32_t> nodes, float* to) {
  Begin(task, nodes);
  const ModelSpec& spec = model_.spec;
  const LayerParameters& mine = task.parameters;
  const uint64_t columns = ShapeOf(spec, task.layer).out;
  const uint64_t floats = nodes.size() * columns;
  const at::Tensor out = View(input_->PlaceOf(to, floats), nodes.size(), columns);
  LayerOf(spec.type).RunExactly(this, out);
  const at::Tensor& projection = mine[TensorRole::kResidual];
  if (projection.defined()) {
    Affine({Input(), projection, {}, {}, out, {}, out});
  } else if (spec.residual) {
    out.add_(Input());
  }
  if (task.layer + 1 < spec.num_layers) {
    FinishLayerInPlace(spec, out, mine[TensorRole::kNormScale], mine[TensorRole::kNormShift],
                       input_->memory());
  }
  input_->Bring(out.const_data_ptr<float>(), floats, to);
}

}  // namespace gnnd
