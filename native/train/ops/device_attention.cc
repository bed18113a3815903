#include "train/ops/device_operators.h"

// Attention and what follows hidden layers, by a device's kernels.

namespace gnnd {
namespace {

using Rows = AttentionRows<float>;
using Table = gnnd_device_plugin;

gnnd_device_attention ArgsOf(const Rows& op, AttentionPass pass) {
  return {.pass = static_cast<uint32_t>(pass),
          .num_dst = op.num_dst,
          .heads = op.heads,
          .columns = op.columns,
          .num_edges = op.num_edges,
          .num_src = op.num_src,
          .indptr = op.indptr,
          .index = op.index,
          .self_index = op.self_index,
          .source = op.source,
          .source_score = op.source_score,
          .destination_score = op.destination_score,
          .destination = op.destination,
          .attention = op.attention,
          .alpha = op.alpha,
          .weight = op.weight,
          .weight_scale = static_cast<double>(op.weight_scale),
          .grad_out = op.grad_out,
          .grad_score = op.grad_score,
          .grad_destination = op.grad_destination,
          .grad_attention = op.grad_attention,
          .transposed_indptr = op.transposed_indptr,
          .transposed_dst = op.transposed_dst,
          .transposed_edge = op.transposed_edge,
          .grad_source = op.grad_source,
          .workspace = nullptr};
}

void Pass(const Rows& op, AttentionPass pass, uint32_t, Workspace* workspace) {
  Launch(workspace, &Table::attention, ArgsOf(op, pass));
}

void BackwardOfSums(const Rows& op, Workspace* workspace) {
  gnnd_device_attention args = ArgsOf(op, AttentionPass::kBackward);
  args.workspace = WorkOf(workspace, &Table::sum_workspace_bytes, op.num_dst, op.width());
  Launch(workspace, &Table::attention, args);
}

void Drop(const Rows& op, const DropoutKey& key, const uint32_t* nodes, uint64_t threshold,
          Workspace* workspace, float* weight) {
  Launch(workspace, &Table::drop_attention,
         {ArgsOf(op, AttentionPass::kForward), key.random_seed, key.epoch, key.batch, key.layer, 0,
          nodes, threshold, weight});
}

// A head's sums of rows weighted by op.weight; `sum` says of which rows and where they go.
void SumHead(const Rows& op, uint32_t head, const float* edge_weight, gnnd_device_spmm sum,
             Workspace* workspace) {
  sum.element = sum.out_element = GNND_ELEMENT_FLOAT32;
  sum.columns = op.columns;
  sum.x_stride = sum.self_stride = sum.out_stride = uint64_t{op.heads} * op.columns;
  sum.self_rows = op.num_dst;
  sum.x = static_cast<const float*>(sum.x) + uint64_t{head} * op.columns;
  sum.out = static_cast<float*>(sum.out) + uint64_t{head} * op.columns;
  sum.self = sum.x;
  sum.self_weight = op.weight + head * op.stride();
  sum.weight = edge_weight;
  Launch(workspace, &Table::spmm, sum);
}

void Aggregate(const Rows& op, Workspace* workspace, float* out) {
  gnnd_device_spmm sum{};
  sum.rows = op.num_dst;
  sum.x = op.source;
  sum.indptr = op.indptr;
  sum.index = op.index;
  sum.self_index = op.self_index;
  sum.out = out;
  for (uint32_t h = 0; h < op.heads; ++h) {
    SumHead(op, h, op.weight + h * op.stride() + op.num_dst, sum, workspace);
  }
}

void Transpose(const Rows& op, Workspace* workspace, uint32_t* indptr, uint32_t* dst,
               uint32_t* edge) {
  const auto num_src = static_cast<uint32_t>(op.num_src);
  Launch(workspace, &Table::transpose,
         {.indptr = op.indptr,
          .src = op.index,
          .num_dst = op.num_dst,
          .num_src = num_src,
          .num_edges = op.num_edges,
          .transposed_indptr = indptr,
          .transposed_dst = dst,
          .transposed_edge = edge,
          .workspace = WorkOf(workspace, &Table::transpose_workspace_bytes, op.num_dst, num_src,
                              op.num_edges)});
}

void AggregateTransposed(const Rows& op, Workspace* workspace) {
  auto* const weight = workspace->Get<float>(op.num_edges);
  gnnd_device_spmm sum{};
  sum.rows = static_cast<uint32_t>(op.num_src);
  sum.x = op.grad_out;
  sum.indptr = op.transposed_indptr;
  sum.index = op.transposed_dst;
  sum.out = op.grad_source;
  for (uint32_t h = 0; h < op.heads; ++h) {
    Launch(workspace, &Table::take,
           {op.weight + h * op.stride() + op.num_dst, op.transposed_edge, op.num_edges, weight});
    SumHead(op, h, weight, sum, workspace);
  }
}

void ScoreGradients(const Rows& op, uint32_t rows, const uint32_t* indptr, const uint32_t* edge,
                    Workspace* workspace, float* out) {
  Launch(workspace, &Table::score_sums,
         {.rows = rows,
          .num_dst = op.num_dst,
          .num_edges = op.num_edges,
          .heads = op.heads,
          .reserved = 0,
          .grad_score = op.grad_score,
          .indptr = indptr,
          .edge = edge,
          .out = out});
}

gnnd_device_heads HeadsOf(const HeadRows<float>& op, uint32_t operation) {
  return {.operation = operation,
          .num_rows = op.num_rows,
          .heads = op.heads,
          .columns = op.columns,
          .rows = const_cast<float*>(op.rows),
          .vectors = const_cast<float*>(op.vectors),
          .scores = const_cast<float*>(op.scores),
          .workspace = nullptr};
}

void Scores(const HeadRows<float>& op, Workspace* workspace, float* out) {
  gnnd_device_heads args = HeadsOf(op, GNND_HEADS_SCORES);
  args.scores = out;
  Launch(workspace, &Table::heads, args);
}

void AddOuter(const HeadRows<float>& op, Workspace* workspace, float* to) {
  gnnd_device_heads args = HeadsOf(op, GNND_HEADS_OUTER);
  args.rows = to;
  Launch(workspace, &Table::heads, args);
}

void VectorGradients(const HeadRows<float>& op, Workspace* workspace, float* out) {
  gnnd_device_heads args = HeadsOf(op, GNND_HEADS_VECTORS);
  args.vectors = out;
  args.workspace =
      WorkOf(workspace, &Table::sum_workspace_bytes, op.num_rows, uint64_t{op.heads} * op.columns);
  Launch(workspace, &Table::heads, args);
}

gnnd_device_activation_rows ActivationArgs(const ActivationRows<float>& op, const float* out) {
  return {.activation = static_cast<uint32_t>(op.activation),
          .inverse_scale = op.inverse_scale,
          .count = op.rows * op.dropout.stride,
          .out = out,
          .values = op.dropout.rows};
}

void Activate(const ActivationRows<float>& op, Workspace* workspace) {
  if (op.activate) Launch(workspace, &Table::activation, ActivationArgs(op, nullptr));
  if (op.dropout.threshold == 0) return;
  workspace->operators().rows<float>().dropout(op.dropout, op.rows, workspace);
}

void ActivationGradient(const ActivationRows<float>& op, const float* out, Workspace* workspace) {
  workspace->operators().rows<float>().dropout(op.dropout, op.rows, workspace);
  if (op.activate) Launch(workspace, &Table::activation, ActivationArgs(op, out));
}

gnnd_device_norm_rows NormArgs(const NormRows<float>& op, uint32_t norm, float* out) {
  return {.norm = norm,
          .rows = op.rows,
          .columns = op.columns,
          .reserved = 0,
          .x = op.x,
          .scale = op.scale,
          .shift = op.shift,
          .grad = op.grad,
          .out = out,
          .grad_scale = nullptr,
          .workspace = nullptr};
}

void LayerNormOf(const NormRows<float>& op, Workspace* workspace, float* out) {
  Launch(workspace, &Table::norm, NormArgs(op, GNND_NORM_LAYER, out));
}

void LayerNormGradient(const NormRows<float>& op, Workspace* workspace, float* grad_in,
                       float* grad_scale) {
  gnnd_device_norm_rows args = NormArgs(op, GNND_NORM_LAYER, grad_in);
  args.grad_scale = grad_scale;
  args.workspace = WorkOf(workspace, &Table::norm_workspace_bytes, op.rows, op.columns);
  Launch(workspace, &Table::norm, args);
}

void Normalize(const NormRows<float>& op, Workspace* workspace, float* out) {
  Launch(workspace, &Table::norm, NormArgs(op, GNND_NORM_L2, out));
}

}  // namespace

AttentionOperators<float> DeviceAttention() {
  return {.scores = &Scores,
          .pass = &Pass,
          .drop = &Drop,
          .aggregate = &Aggregate,
          .transpose = &Transpose,
          .aggregate_transposed = &AggregateTransposed,
          .backward_of_sums = &BackwardOfSums,
          .score_gradients = &ScoreGradients,
          .add_outer = &AddOuter,
          .vector_gradients = &VectorGradients};
}

FinishOperators<float> DeviceFinish() {
  return {.activate = &Activate,
          .activation_gradient = &ActivationGradient,
          .layer_norm = &LayerNormOf,
          .layer_norm_gradient = &LayerNormGradient,
          .normalize = &Normalize,
          .normalize_gradient = &Normalize};
}

}  // namespace gnnd
