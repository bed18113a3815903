#include "train/ops/device_operators.h"
#include "train/ops/device_stream.h"

// Attention and what follows hidden layers, by a device's kernels.

namespace gnnd {
namespace {

using Rows = AttentionRows<float>;

TrainStream& StreamOf(Workspace* workspace) { return TrainStream::Of(workspace->device()); }

gnnd_device_attention ArgsOf(const Rows& op) {
  gnnd_device_attention args{};
  args.num_dst = op.num_dst;
  args.heads = op.heads;
  args.columns = op.columns;
  args.num_edges = op.num_edges;
  args.num_src = op.num_src;
  args.indptr = op.indptr;
  args.index = op.index;
  args.self_index = op.self_index;
  args.source = op.source;
  args.source_score = op.source_score;
  args.destination_score = op.destination_score;
  args.destination = op.destination;
  args.attention = op.attention;
  args.alpha = op.alpha;
  args.weight = op.weight;
  args.weight_scale = static_cast<double>(op.weight_scale);
  args.grad_out = op.grad_out;
  args.grad_score = op.grad_score;
  args.grad_destination = op.grad_destination;
  args.grad_attention = op.grad_attention;
  args.transposed_indptr = op.transposed_indptr;
  args.transposed_dst = op.transposed_dst;
  args.transposed_edge = op.transposed_edge;
  args.grad_source = op.grad_source;
  return args;
}

void Pass(const Rows& op, AttentionPass pass, uint32_t, Workspace* workspace) {
  gnnd_device_attention args = ArgsOf(op);
  args.pass = static_cast<uint32_t>(pass);
  TrainStream& stream = StreamOf(workspace);
  stream.Launch(stream.table().attention, args);
}

void BackwardOfSums(const Rows& op, Workspace* workspace) {
  gnnd_device_attention args = ArgsOf(op);
  args.pass = static_cast<uint32_t>(AttentionPass::kBackward);
  TrainStream& stream = StreamOf(workspace);
  args.workspace = workspace->Get<std::byte>(
      stream.table().sum_workspace_bytes(op.num_dst, uint64_t{op.heads} * op.columns));
  stream.Launch(stream.table().attention, args);
}

void Drop(const Rows& op, const DropoutKey& key, const uint32_t* nodes, uint64_t threshold,
          Workspace* workspace, float* weight) {
  TrainStream& stream = StreamOf(workspace);
  stream.Launch(stream.table().drop_attention,
                gnnd_device_drop_attention{ArgsOf(op), key.random_seed, key.epoch, key.batch,
                                           key.layer, 0, nodes, threshold, weight});
}

// A head's sums of rows weighted by op.weight; `sum` says of which rows and where they go.
void SumHead(const Rows& op, uint32_t head, const float* edge_weight, gnnd_device_spmm sum,
             TrainStream* stream) {
  sum.element = sum.out_element = GNND_ELEMENT_FLOAT32;
  sum.columns = op.columns;
  sum.x_stride = sum.self_stride = sum.out_stride = uint64_t{op.heads} * op.columns;
  sum.self_rows = op.num_dst;
  sum.x = static_cast<const float*>(sum.x) + uint64_t{head} * op.columns;
  sum.out = static_cast<float*>(sum.out) + uint64_t{head} * op.columns;
  sum.self = sum.x;
  sum.self_weight = op.weight + head * op.stride();
  sum.weight = edge_weight;
  stream->Launch(stream->table().spmm, sum);
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
    SumHead(op, h, op.weight + h * op.stride() + op.num_dst, sum, &StreamOf(workspace));
  }
}

void Transpose(const Rows& op, Workspace* workspace, uint32_t* indptr, uint32_t* dst,
               uint32_t* edge) {
  TrainStream& stream = StreamOf(workspace);
  gnnd_device_transpose args{};
  args.indptr = op.indptr;
  args.src = op.index;
  args.num_dst = op.num_dst;
  args.num_src = static_cast<uint32_t>(op.num_src);
  args.num_edges = op.num_edges;
  args.transposed_indptr = indptr;
  args.transposed_dst = dst;
  args.transposed_edge = edge;
  args.workspace = workspace->Get<std::byte>(
      stream.table().transpose_workspace_bytes(args.num_dst, args.num_src, args.num_edges));
  stream.Launch(stream.table().transpose, args);
}

void AggregateTransposed(const Rows& op, Workspace* workspace) {
  TrainStream& stream = StreamOf(workspace);
  auto* const weight = workspace->Get<float>(op.num_edges);
  gnnd_device_spmm sum{};
  sum.rows = static_cast<uint32_t>(op.num_src);
  sum.x = op.grad_out;
  sum.indptr = op.transposed_indptr;
  sum.index = op.transposed_dst;
  sum.out = op.grad_source;
  for (uint32_t h = 0; h < op.heads; ++h) {
    stream.Launch(stream.table().take, gnnd_device_take{op.weight + h * op.stride() + op.num_dst,
                                                        op.transposed_edge, op.num_edges, weight});
    SumHead(op, h, weight, sum, &stream);
  }
}

void ScoreGradients(const Rows& op, uint32_t rows, const uint32_t* indptr, const uint32_t* edge,
                    Workspace* workspace, float* out) {
  TrainStream& stream = StreamOf(workspace);
  gnnd_device_score_sums args{};
  args.rows = rows;
  args.num_dst = op.num_dst;
  args.num_edges = op.num_edges;
  args.heads = op.heads;
  args.grad_score = op.grad_score;
  args.indptr = indptr;
  args.edge = edge;
  args.out = out;
  stream.Launch(stream.table().score_sums, args);
}

// Of the three, the operation writes one.
gnnd_device_heads HeadsOf(const HeadRows<float>& op, uint32_t operation) {
  gnnd_device_heads args{};
  args.operation = operation;
  args.num_rows = op.num_rows;
  args.heads = op.heads;
  args.columns = op.columns;
  args.rows = const_cast<float*>(op.rows);
  args.vectors = const_cast<float*>(op.vectors);
  args.scores = const_cast<float*>(op.scores);
  return args;
}

void Scores(const HeadRows<float>& op, Workspace* workspace, float* out) {
  gnnd_device_heads args = HeadsOf(op, GNND_HEADS_SCORES);
  args.scores = out;
  TrainStream& stream = StreamOf(workspace);
  stream.Launch(stream.table().heads, args);
}

void AddOuter(const HeadRows<float>& op, Workspace* workspace, float* to) {
  gnnd_device_heads args = HeadsOf(op, GNND_HEADS_OUTER);
  args.rows = to;
  TrainStream& stream = StreamOf(workspace);
  stream.Launch(stream.table().heads, args);
}

void VectorGradients(const HeadRows<float>& op, Workspace* workspace, float* out) {
  gnnd_device_heads args = HeadsOf(op, GNND_HEADS_VECTORS);
  args.vectors = out;
  TrainStream& stream = StreamOf(workspace);
  args.workspace = workspace->Get<std::byte>(
      stream.table().sum_workspace_bytes(op.num_rows, uint64_t{op.heads} * op.columns));
  stream.Launch(stream.table().heads, args);
}

gnnd_device_activation_rows ActivationArgs(const ActivationRows<float>& op) {
  gnnd_device_activation_rows args{};
  args.activation = static_cast<uint32_t>(op.activation);
  args.inverse_scale = op.inverse_scale;
  args.count = op.rows * op.dropout.stride;
  args.values = op.dropout.rows;
  return args;
}

void Activate(const ActivationRows<float>& op, Workspace* workspace) {
  TrainStream& stream = StreamOf(workspace);
  if (op.activate) stream.Launch(stream.table().activation, ActivationArgs(op));
  if (op.dropout.threshold == 0) return;
  workspace->operators().rows<float>().dropout(op.dropout, op.rows, workspace);
}

void ActivationGradient(const ActivationRows<float>& op, const float* out, Workspace* workspace) {
  workspace->operators().rows<float>().dropout(op.dropout, op.rows, workspace);
  if (!op.activate) return;
  gnnd_device_activation_rows args = ActivationArgs(op);
  args.out = out;
  TrainStream& stream = StreamOf(workspace);
  stream.Launch(stream.table().activation, args);
}

gnnd_device_norm_rows NormArgs(const NormRows<float>& op, uint32_t norm, float* out) {
  gnnd_device_norm_rows args{};
  args.norm = norm;
  args.rows = op.rows;
  args.columns = op.columns;
  args.x = op.x;
  args.scale = op.scale;
  args.shift = op.shift;
  args.grad = op.grad;
  args.out = out;
  return args;
}

void LayerNormOf(const NormRows<float>& op, Workspace* workspace, float* out) {
  TrainStream& stream = StreamOf(workspace);
  stream.Launch(stream.table().norm, NormArgs(op, GNND_NORM_LAYER, out));
}

void LayerNormGradient(const NormRows<float>& op, Workspace* workspace, float* grad_in,
                       float* grad_scale) {
  TrainStream& stream = StreamOf(workspace);
  gnnd_device_norm_rows args = NormArgs(op, GNND_NORM_LAYER, grad_in);
  args.grad_scale = grad_scale;
  args.workspace =
      workspace->Get<std::byte>(stream.table().norm_workspace_bytes(op.rows, op.columns));
  stream.Launch(stream.table().norm, args);
}

void Normalize(const NormRows<float>& op, Workspace* workspace, float* out) {
  TrainStream& stream = StreamOf(workspace);
  stream.Launch(stream.table().norm, NormArgs(op, GNND_NORM_L2, out));
}

}  // namespace

AttentionOperators<float> DeviceAttention() {
  AttentionOperators<float> operators{};
  operators.scores = &Scores;
  operators.pass = &Pass;
  operators.drop = &Drop;
  operators.aggregate = &Aggregate;
  operators.transpose = &Transpose;
  operators.aggregate_transposed = &AggregateTransposed;
  operators.backward_of_sums = &BackwardOfSums;
  operators.score_gradients = &ScoreGradients;
  operators.add_outer = &AddOuter;
  operators.vector_gradients = &VectorGradients;
  return operators;
}

FinishOperators<float> DeviceFinish() {
  FinishOperators<float> operators{};
  operators.activate = &Activate;
  operators.activation_gradient = &ActivationGradient;
  operators.layer_norm = &LayerNormOf;
  operators.layer_norm_gradient = &LayerNormGradient;
  operators.normalize = &Normalize;
  operators.normalize_gradient = &Normalize;
  return operators;
}

}  // namespace gnnd
