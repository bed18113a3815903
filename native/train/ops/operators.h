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

// The operators of train/, one table for each kind of device: core/kernels on the CPU, kernels of
// its own on another device. An autograd function (ops.h, attention.h) knows shapes, places and the
// data for backward; it never reads an array itself, and calls its workspace's table. Each entry is
// a whole operation over all rows. Pointers are to memory of the table's device, as is a
// Workspace's memory there. An operation's workspace decides which device and stream computes it,
// because any thread may call an autograd function. An operator throws its device's errors
// (DeviceError of device_stream.h; std::bad_alloc).

namespace gnnd {

// The type in which rows of T are summed.
template <typename T>
using SumOf = std::conditional_t<std::same_as<T, Bfloat16>, float, T>;

// A mean over the edges of destinations: scale[d] = 1 / the sum of their weights, or 0 if that is
// not above 0; `scaled`, if requested, is scale * weight of each edge.
template <typename Sum>
struct MeanScales {
  const uint32_t* indptr = nullptr;  // [num_dst + 1]
  const Sum* weight = nullptr;       // [num_edges]; null = 1
  uint32_t num_dst = 0;
  Sum* scale = nullptr;   // [num_dst]; written by mean_scales
  Sum* scaled = nullptr;  // [num_edges]; written by scale_weights
};

// Sets grad_in = grad * scale where `out` is not 0, else 0. Elements that were not positive, or did
// not survive dropout, are 0 in the output, so backward needs nothing else.
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

  // Sets out = the sparse matrix times rows (core/kernels/spmm.h).
  void (*sum_edges)(const Spmm<Sum, T, T>& op, uint32_t rows, Workspace* workspace);
  // The same straight from feature rows, rounding each sum once; not available in float64.
  void (*sum_floats)(const Spmm<Sum, float, T>& op, uint32_t rows, Workspace* workspace);
  void (*sum_halves)(const Spmm<Sum, Half, T>& op, uint32_t rows, Workspace* workspace);
  void (*mean_scales)(const MeanScales<Sum>& op, Workspace* workspace);
  void (*scale_weights)(const MeanScales<Sum>& op, Workspace* workspace);
  // Writes arrays of [num_src + 1], [num_edges] and [num_edges].
  void (*transpose)(const TransposeInput<Sum>& in, Workspace* workspace, uint32_t* indptr,
                    uint32_t* dst, Sum* weight);
  // The record's float32 weights as Sum: in place, or a copy in the workspace.
  const Sum* (*weights)(std::span<const float> weights, Workspace* workspace);
  void (*dropout)(const DropoutRows<T, Sum>& op, uint32_t rows, Workspace* workspace);
  void (*dropout_gradient)(const DropoutGradient<T>& op, Workspace* workspace);
  // Sets out[c] = the sum over rows, in groups of 64 (train/ops/grouped_sum.h).
  void (*sum_rows)(const T* rows, uint32_t count, uint64_t columns, Workspace* workspace, Sum* out);
};

// One number per row and head, [heads][rows], or one vector per head, [heads, columns].
template <typename T>
struct HeadRows {
  const T* rows = nullptr;     // [num_rows, heads * columns]
  const T* vectors = nullptr;  // [heads, columns]
  const T* scores = nullptr;   // [heads][num_rows]
  uint32_t num_rows = 0;
  uint32_t heads = 0;
  uint32_t columns = 0;
};

// Operators of graph attention around the passes of core/kernels/attention.h.
template <typename T>
struct AttentionOperators {
  // Sets out[h][r] = vectors[h] . rows[r][h].
  void (*scores)(const HeadRows<T>& op, Workspace* workspace, T* out);
  // Forward and the backward pass of sources; for GAT also the backward pass of destinations.
  void (*pass)(const AttentionRows<T>& op, AttentionPass pass, uint32_t rows, Workspace* workspace);
  void (*drop)(const AttentionRows<T>& op, const DropoutKey& key, const uint32_t* nodes,
               uint64_t threshold, Workspace* workspace, T* weight);
  // Sets out = the sums of source rows weighted by op.weight.
  void (*aggregate)(const AttentionRows<T>& op, Workspace* workspace, T* out);
  // Writes arrays of [num_src + 1], [num_edges], and [num_edges] numbers of edges.
  void (*transpose)(const AttentionRows<T>& op, Workspace* workspace, uint32_t* indptr,
                    uint32_t* dst, uint32_t* edge);
  // Sets op.grad_source = the weights' transpose times op.grad_out.
  void (*aggregate_transposed)(const AttentionRows<T>& op, Workspace* workspace);
  // GATv2: the pass over destinations; op.grad_attention is overwritten, not added to.
  void (*backward_of_sums)(const AttentionRows<T>& op, Workspace* workspace);
  // Sets out[h][r] to the sum of op.grad_score over the edges of each row, which `edge` lists
  // (null: in their order), and over a destination's own slot.
  void (*score_gradients)(const AttentionRows<T>& op, uint32_t rows, const uint32_t* indptr,
                          const uint32_t* edge, Workspace* workspace, T* out);
  // Adds scores[h][r] * vectors[h] to to[r][h].
  void (*add_outer)(const HeadRows<T>& op, Workspace* workspace, T* to);
  // Sets out[h] = sum over r of scores[h][r] * rows[r][h], in groups of 64.
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

// Rows [rows, columns] to be normalised; in backward also the gradient of the result.
template <typename T>
struct NormRows {
  const T* x = nullptr;
  uint32_t rows = 0;
  uint32_t columns = 0;
  const T* scale = nullptr;  // layer normalisation: [columns]
  const T* shift = nullptr;
  const T* grad = nullptr;
};

// Operators after hidden layers (after_layer.h).
template <typename T>
struct FinishOperators {
  void (*activate)(const ActivationRows<T>& op, Workspace* workspace);
  // The rows of op.dropout are the gradient, and become that of the input; `out` is the result of
  // activation and dropout. The mask is drawn again: a 0 in `out` need not be a dropped element.
  void (*activation_gradient)(const ActivationRows<T>& op, const T* out, Workspace* workspace);
  void (*layer_norm)(const NormRows<T>& op, Workspace* workspace, T* out);
  // grad_scale is [2, columns], for scale and shift, summed in groups of 64 rows.
  void (*layer_norm_gradient)(const NormRows<T>& op, Workspace* workspace, T* grad_in,
                              T* grad_scale);
  // Sets out = x / max(|x|, epsilon) by rows.
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
  const T* shift = nullptr;  // [columns]; not read by backward
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
  const T* grad = nullptr;   // for backward, as the fields below: like out
  T* grad_query = nullptr;
  T* grad_key = nullptr;
  T* grad_value = nullptr;

  uint64_t width() const { return uint64_t{heads} * head_width; }
  // Number of a row's probabilities.
  uint64_t scores() const { return uint64_t{heads} * queries * tokens; }
};

// Keyed dropout of probabilities: element i of a row's belongs to its node (core/draw/dropout.h).
struct TokenDropout {
  DropoutKey key;
  const uint32_t* nodes = nullptr;  // [rows]
  float p = 0;
};

// Operators of models over rows of propagated features (row_ops.h).
template <typename T>
struct RowModelOperators {
  // Writes moments and inverse.
  void (*batch_norm)(const BatchNormRows<T>& op, Workspace* workspace, T* out);
  // Reads moments, writes inverse.
  void (*batch_norm_by)(const BatchNormRows<T>& op, Workspace* workspace, T* out);
  // Reads both. grad_scale is [2, columns], for scale and shift, summed in groups of 64 rows.
  void (*batch_norm_gradient)(const BatchNormRows<T>& op, Workspace* workspace, T* grad_in,
                              T* grad_scale);
  void (*prelu)(const PReluRows<T>& op, Workspace* workspace, T* out);
  // grad_slope is [1], summed in groups of 64 rows.
  void (*prelu_gradient)(const PReluRows<T>& op, Workspace* workspace, T* grad_in, T* grad_slope);
  // Writes the mask if there is one, the probabilities and `out`.
  void (*attend)(const TokenRows<T>& op, const TokenDropout& dropout, Workspace* workspace);
  void (*attend_gradient)(const TokenRows<T>& op, Workspace* workspace);
};

// The loss of rows, by the task (core/kernels/loss.h): cross-entropy of softmax(logits) against
// labels, binary cross-entropy of sigmoid(logits), or the mean of squared differences.
struct LossRows {
  const float* logits = nullptr;     // [rows, classes]
  const uint32_t* labels = nullptr;  // kClassification: [rows]
  uint32_t rows = 0;
  uint64_t classes = 0;
  float* grad = nullptr;  // like logits
  // In the host's memory on every device:
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

  // Convert between float32 and bfloat16.
  void (*narrow)(const float* from, uint32_t rows, uint64_t columns, Workspace* workspace,
                 Bfloat16* to);
  void (*widen)(const Bfloat16* from, uint32_t rows, uint64_t columns, Workspace* workspace,
                float* to);
  // Matrix products (train/ops/affine.h).
  void (*affine)(const AffineOp& op, Workspace* workspace);
  void (*transposed_product)(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& out,
                             Workspace* workspace);
  LossSums (*loss)(const LossRows& op, Workspace* workspace);
  // One step of the optimizer over all parameters; they are in the host's memory on every device.
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

// The table that uses core/kernels on the processor's threads.
const Operators& CpuOperators();

// Parts of that table (cpu_attention.cc, cpu_finish.cc, cpu_row_models.cc).
template <typename T>
AttentionOperators<T> CpuAttention();
template <typename T>
FinishOperators<T> CpuFinish();
template <typename T>
RowModelOperators<T> CpuRowModels();

}  // namespace gnnd
