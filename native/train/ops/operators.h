#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "core/base/bfloat16.h"
#include "core/base/half.h"
#include "core/graph/dataset.h"
#include "core/kernels/attention.h"
#include "core/kernels/dropout.h"
#include "core/kernels/optimizer.h"
#include "core/kernels/spmm.h"
#include "core/kernels/transpose.h"
#include "core/model/model_spec.h"
#include "train/ops/affine.h"
#include "train/ops/workspace.h"

// What the operators of train/ compute with, a table for each kind of device: core/kernels on the
// CPU, kernels of its own on another one. An autograd function (ops.h, attention.h) knows shapes,
// places and what backward needs; it never looks into an array, and calls its workspace's table.
// Each entry is a whole operation over all rows. Pointers are to memory of the table's device, and
// so is what a Workspace hands out there. The workspace of an operation says which device and which
// of its streams computes it: an autograd function may be called by any thread. An operator throws
// what its device could not do (DeviceError of device_stream.h; std::bad_alloc).

namespace gnnd {

// What rows of T are computed with.
template <typename T>
using SumOf = std::conditional_t<std::same_as<T, Bfloat16>, float, T>;

// A mean over the edges of destinations: scale[d] = 1 / the sum of their weights, 0 where that is
// not above 0; `scaled`, where asked for, is scale * weight of each edge.
template <typename Sum>
struct MeanScales {
  const uint32_t* indptr = nullptr;  // [num_dst + 1]
  const Sum* weight = nullptr;       // [num_edges]; null = 1
  uint32_t num_dst = 0;
  Sum* scale = nullptr;   // [num_dst]; written by mean_scales
  Sum* scaled = nullptr;  // [num_edges]; written by scale_weights
};

// grad_in = grad * scale where `out` is not 0, else 0. What was not positive or did not survive
// dropout is 0 in the output, so the output is all that backward needs.
template <typename T>
struct DropoutGradient {
  const T* out = nullptr;
  const T* grad = nullptr;
  uint32_t rows = 0;
  uint64_t columns = 0;
  SumOf<T> scale{1};
  T* grad_in = nullptr;
};

template <typename T>
struct RowOperators {
  using Sum = SumOf<T>;

  // out = the sparse matrix times rows (core/kernels/spmm.h).
  void (*sum_edges)(const Spmm<Sum, T, T>& op, uint32_t rows, Workspace* workspace);
  // The same straight from feature rows, each rounded once; none in float64.
  void (*sum_floats)(const Spmm<Sum, float, T>& op, uint32_t rows, Workspace* workspace);
  void (*sum_halves)(const Spmm<Sum, Half, T>& op, uint32_t rows, Workspace* workspace);
  void (*mean_scales)(const MeanScales<Sum>& op, Workspace* workspace);
  void (*scale_weights)(const MeanScales<Sum>& op, Workspace* workspace);
  // [num_src + 1], [num_edges], [num_edges].
  void (*transpose)(const TransposeInput<Sum>& in, Workspace* workspace, uint32_t* indptr,
                    uint32_t* dst, Sum* weight);
  // The record's float32 weights as Sum: themselves, or a copy in the workspace.
  const Sum* (*weights)(std::span<const float> weights, Workspace* workspace);
  void (*dropout)(const DropoutRows<T, Sum>& op, uint32_t rows, Workspace* workspace);
  void (*dropout_gradient)(const DropoutGradient<T>& op, Workspace* workspace);
  // out[c] = the sum over rows, in groups of 64 (train/ops/grouped_sum.h).
  void (*sum_rows)(const T* rows, uint32_t count, uint64_t columns, Workspace* workspace, Sum* out);
};

// One number a row and head, or a vector a head: [heads][rows], [heads, columns].
template <typename T>
struct HeadRows {
  const T* rows = nullptr;     // [num_rows, heads * columns]
  const T* vectors = nullptr;  // [heads, columns]
  const T* scores = nullptr;   // [heads][num_rows]
  uint32_t num_rows = 0;
  uint32_t heads = 0;
  uint32_t columns = 0;
};

// Graph attention, around the passes of core/kernels/attention.h.
template <typename T>
struct AttentionOperators {
  // out[h][r] = vectors[h] . rows[r][h]
  void (*scores)(const HeadRows<T>& op, Workspace* workspace, T* out);
  // Forward and the backward pass of sources; for GAT, the backward pass of destinations, too.
  void (*pass)(const AttentionRows<T>& op, AttentionPass pass, uint32_t rows, Workspace* workspace);
  void (*drop)(const AttentionRows<T>& op, const DropoutKey& key, const uint32_t* nodes,
               uint64_t threshold, Workspace* workspace, T* weight);
  // out = sums of source rows weighted by op.weight.
  void (*aggregate)(const AttentionRows<T>& op, Workspace* workspace, T* out);
  // [num_src + 1], [num_edges] and which edge it is.
  void (*transpose)(const AttentionRows<T>& op, Workspace* workspace, uint32_t* indptr,
                    uint32_t* dst, uint32_t* edge);
  // op.grad_source = the weights' transpose times op.grad_out.
  void (*aggregate_transposed)(const AttentionRows<T>& op, Workspace* workspace);
  // GATv2: the pass over destinations; op.grad_attention is written, not added to.
  void (*backward_of_sums)(const AttentionRows<T>& op, Workspace* workspace);
  // out[h][r]: sums of op.grad_score over the edges of each row, which `edge` names where they are
  // not numbered as they stand (null), and over a destination's own.
  void (*score_gradients)(const AttentionRows<T>& op, uint32_t rows, const uint32_t* indptr,
                          const uint32_t* edge, Workspace* workspace, T* out);
  // to[r][h] += scores[h][r] * vectors[h]
  void (*add_outer)(const HeadRows<T>& op, Workspace* workspace, T* to);
  // out[h] = sum over r of scores[h][r] * rows[r][h], in groups of 64.
  void (*vector_gradients)(const HeadRows<T>& op, Workspace* workspace, T* out);
};

// An activation, then dropout, in place on the rows of `dropout`.
template <typename T>
struct ActivationRows {
  Activation activation = Activation::kRelu;
  bool activate = true;  // else only dropout
  DropoutRows<T> dropout;
  T inverse_scale{1};  // 1 - the probability of dropout
  uint32_t rows = 0;
};

// Rows [rows, columns] to be normalised, and in backward the gradient of the result.
template <typename T>
struct NormRows {
  const T* x = nullptr;
  uint32_t rows = 0;
  uint32_t columns = 0;
  const T* scale = nullptr;  // layer normalisation: [columns]
  const T* shift = nullptr;
  const T* grad = nullptr;
};

// What follows hidden layers (after_layer.h).
template <typename T>
struct FinishOperators {
  void (*activate)(const ActivationRows<T>& op, Workspace* workspace);
  // The rows of op.dropout are the gradient, and become that of the input; `out` is what the
  // activation and dropout gave. The mask is drawn again: a 0 there need not be a dropped element.
  void (*activation_gradient)(const ActivationRows<T>& op, const T* out, Workspace* workspace);
  void (*layer_norm)(const NormRows<T>& op, Workspace* workspace, T* out);
  // grad_scale is [2, columns]: of scale and shift, summed in groups of 64 rows.
  void (*layer_norm_gradient)(const NormRows<T>& op, Workspace* workspace, T* grad_in,
                              T* grad_scale);
  // x / max(|x|, epsilon) by rows.
  void (*normalize)(const NormRows<T>& op, Workspace* workspace, T* out);
  void (*normalize_gradient)(const NormRows<T>& op, Workspace* workspace, T* grad_in);
};

// Batch normalisation (epsilon 1e-5) of x [rows, columns].
template <typename T>
struct BatchNormRows {
  const T* x = nullptr;
  uint32_t rows = 0;
  uint64_t columns = 0;
  const T* scale = nullptr;  // [columns]
  const T* shift = nullptr;  // [columns]; backward reads none
  T* moments = nullptr;      // [2, columns]: mean and variance over `rows`, or given ones
  T* inverse = nullptr;      // [columns]: 1 / the standard deviation
  const T* grad = nullptr;   // backward: like x
};

// PReLU of x [rows, columns] with one slope.
template <typename T>
struct PReluRows {
  const T* x = nullptr;
  uint32_t rows = 0;
  uint64_t columns = 0;
  const T* slope = nullptr;
  const T* grad = nullptr;  // backward: like x
};

// Attention of each row's queries over its tokens (row_ops.h); gradients are written, not added to.
template <typename T>
struct TokenRows {
  uint32_t rows = 0;
  uint32_t queries = 0;
  uint32_t tokens = 0;
  uint32_t heads = 0;
  uint32_t head_width = 0;
  const T* query = nullptr;  // [rows, queries, width]
  const T* key = nullptr;    // [rows, tokens, width]
  const T* value = nullptr;  // [rows, tokens, width]
  T* probability = nullptr;  // [rows, heads, queries, tokens], before dropout
  T* mask = nullptr;         // like it: 0 or 1 / (1 - p); null: no dropout
  T* out = nullptr;          // [rows, queries, width]
  const T* grad = nullptr;   // backward, as the rest: like out
  T* grad_query = nullptr;
  T* grad_key = nullptr;
  T* grad_value = nullptr;

  uint64_t width() const { return uint64_t{heads} * head_width; }
  // Of a row's probabilities.
  uint64_t scores() const { return uint64_t{heads} * queries * tokens; }
};

// Whose probabilities survive: element i of a row's is the node's (core/draw/dropout.h).
struct TokenDropout {
  DropoutKey key;
  const uint32_t* nodes = nullptr;  // [rows]
  float p = 0;
};

// What models over rows of propagated features compute (row_ops.h).
template <typename T>
struct RowModelOperators {
  // Writes moments and inverse.
  void (*batch_norm)(const BatchNormRows<T>& op, Workspace* workspace, T* out);
  // Reads moments, writes inverse.
  void (*batch_norm_by)(const BatchNormRows<T>& op, Workspace* workspace, T* out);
  // Reads both. grad_scale is [2, columns]: of scale and shift, summed in groups of 64 rows.
  void (*batch_norm_gradient)(const BatchNormRows<T>& op, Workspace* workspace, T* grad_in,
                              T* grad_scale);
  void (*prelu)(const PReluRows<T>& op, Workspace* workspace, T* out);
  // grad_slope [1]: summed in groups of 64 rows.
  void (*prelu_gradient)(const PReluRows<T>& op, Workspace* workspace, T* grad_in, T* grad_slope);
  // Writes the mask, where there is one, the probabilities and `out`.
  void (*attend)(const TokenRows<T>& op, const TokenDropout& dropout, Workspace* workspace);
  void (*attend_gradient)(const TokenRows<T>& op, Workspace* workspace);
};

// What training adds up, by the task (core/kernels/loss.h): cross-entropy of softmax(logits)
// against labels, binary cross-entropy of sigmoid(logits), or the mean of squared differences.
struct LossRows {
  const float* logits = nullptr;     // [rows, classes]
  const uint32_t* labels = nullptr;  // kClassification: [rows]
  uint32_t rows = 0;
  uint64_t classes = 0;
  float* grad = nullptr;  // like logits
  // In the host's memory on every device.
  Task task = Task::kClassification;
  const float* targets = nullptr;  // other tasks: like logits, NaN = not known
  const float* weights = nullptr;  // [classes], or null: NodeTargets::weights
};
struct LossSums {
  double loss = 0;       // summed in the order of rows
  uint64_t correct = 0;  // kClassification: rows whose arg-max is their label
};

struct Operators {
  RowOperators<float> of_float;
  RowOperators<double> of_double;
  RowOperators<Bfloat16> of_bfloat16;
  AttentionOperators<float> attention_of_float;
  AttentionOperators<double> attention_of_double;
  FinishOperators<float> finish_of_float;
  FinishOperators<double> finish_of_double;
  RowModelOperators<float> row_models_of_float;
  RowModelOperators<double> row_models_of_double;

  // Between float32 and bfloat16.
  void (*narrow)(const float* from, uint32_t rows, uint64_t columns, Workspace* workspace,
                 Bfloat16* to);
  void (*widen)(const Bfloat16* from, uint32_t rows, uint64_t columns, Workspace* workspace,
                float* to);
  // Matrix products (train/ops/affine.h).
  void (*affine)(const AffineOp& op, Workspace* workspace);
  void (*transposed_product)(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& out,
                             Workspace* workspace);
  LossSums (*loss)(const LossRows& op, Workspace* workspace);
  // One step of the optimizer, all of the parameter vector; in the host's memory on every device.
  void (*update)(const ParameterManifest& manifest, const OptimizerOptions& options,
                 const OptimizerStep& step);

  template <typename T>
  const RowOperators<T>& rows() const {
    if constexpr (std::same_as<T, float>) return of_float;
    if constexpr (std::same_as<T, double>) return of_double;
    if constexpr (std::same_as<T, Bfloat16>) return of_bfloat16;
  }
  template <typename T>
  const AttentionOperators<T>& attention() const {
    if constexpr (std::same_as<T, float>) return attention_of_float;
    if constexpr (std::same_as<T, double>) return attention_of_double;
  }
  template <typename T>
  const FinishOperators<T>& finish() const {
    if constexpr (std::same_as<T, float>) return finish_of_float;
    if constexpr (std::same_as<T, double>) return finish_of_double;
  }
  template <typename T>
  const RowModelOperators<T>& row_models() const {
    if constexpr (std::same_as<T, float>) return row_models_of_float;
    if constexpr (std::same_as<T, double>) return row_models_of_double;
  }
};

// On torch's threads, with core/kernels.
const Operators& CpuOperators();

// Parts of it (cpu_attention.cc, cpu_finish.cc, cpu_row_models.cc).
template <typename T>
AttentionOperators<T> CpuAttention();
template <typename T>
FinishOperators<T> CpuFinish();
template <typename T>
RowModelOperators<T> CpuRowModels();

}  // namespace gnnd
