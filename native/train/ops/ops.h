#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/bfloat16.h"
#include "core/batch/record.h"
#include "core/graph/row_table.h"
#include "core/kernels/dropout.h"
#include "core/model/model_spec.h"
#include "train/ops/operators.h"
#include "train/ops/workspace.h"

// The differentiable operators of models over blocks. Each is a torch::autograd::Function whose
// outputs and gradients lie in the batch's workspace, and which computes with the operators of that
// workspace's device (operators.h). All work in float32, in float64 (for tests against dense
// references), and on rows in bfloat16, with float32 sums, intermediate results, parameters and
// their gradients.

namespace gnnd {

enum class Reduction : uint32_t {
  kMean,  // mean over a destination's edges, weighted if the block has weights: sum of weight * x
          // over sum of weights; 0 if the divisor is 0
  kSum,   // sum over a destination's edges, of weight * x if the block has weights
  kWeightedSum,  // sum of weight * x over edges, plus self_weight * x of the row itself, if any
};

// Memory of a device as a tensor of [rows, columns], or [columns] if rows is 0. Does not own it.
at::Tensor ViewOf(float* data, int64_t rows, int64_t columns, at::Device where = at::kCPU);
at::Tensor ViewOf(double* data, int64_t rows, int64_t columns, at::Device where = at::kCPU);
at::Tensor ViewOf(Bfloat16* data, int64_t rows, int64_t columns, at::Device where = at::kCPU);

// Views of a parameter vector, in the manifest's order: matrices, and biases as vectors.
std::vector<at::Tensor> ViewsOf(const ParameterManifest& manifest, std::span<const float> floats,
                                at::Device where);

// An uninitialised [rows, columns] tensor in the workspace, with the element type of `like`.
at::Tensor EmptyIn(Workspace* workspace, const at::Tensor& like, int64_t rows, int64_t columns);

// Rows of a table, copied as T, float or Bfloat16: [rows.size(), table.dim()], in the workspace.
template <typename T>
at::Tensor GatheredRows(const RowTable& table, std::span<const uint32_t> rows,
                        Workspace* workspace);

// Calls body(T()), where T is the tensor's element type, float or double.
template <typename Body>
decltype(auto) InTypeOf(const at::Tensor& tensor, const Body& body) {
  return tensor.scalar_type() == at::kDouble ? body(double()) : body(float());
}

// InTypeOf that also calls bfloat16 Bfloat16.
template <typename Body>
decltype(auto) InRowTypeOf(const at::Tensor& tensor, const Body& body) {
  if (tensor.scalar_type() == at::kBFloat16) return body(Bfloat16());
  return InTypeOf(tensor, body);
}

// The tensor, or nothing if it is undefined.
inline std::optional<at::Tensor> IfDefined(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt;
}

// Sums of eight parts vectorise, and their order is fixed.
template <typename T>
T Total(const T (&sum)[8]) {
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

// Calls body(c, c % 8) for every c below `count`.
template <typename Body>
void ForLanes(uint32_t count, const Body& body) {
  uint32_t c = 0;
  for (; c + 8 <= count; c += 8) {
    for (uint32_t k = 0; k < 8; ++k) body(c + k, k);
  }
  for (; c < count; ++c) body(c, c % 8);
}

template <typename T>
T DotOfRows(const T* __restrict a, const T* __restrict b, uint32_t count) {
  T sum[8] = {};
  ForLanes(count, [&](uint32_t c, uint32_t lane) { sum[lane] += a[c] * b[c]; });
  return Total(sum);
}

// One block as an operand of aggregation, in element type T: weights and, once a gradient needs it,
// the transposed CSC. Borrows the record; its arrays lie in the workspace.
template <typename T>
class BlockOperand final : public torch::CustomClassHolder {
 public:
  using Sum = SumOf<T>;

  // REQUIRES: kWeightedSum needs a block with weights.
  BlockOperand(const BlockView& block, Reduction reduction, Workspace* workspace);

  // Aggregates [num_src, d] to [num_dst, d].
  at::Tensor Aggregate(const at::Tensor& x) const;

  // The gradient of Aggregate with respect to x: the transpose times `grad`, [num_dst, d] ->
  // [num_src, d]. `grad_self` ([num_dst, d] or undefined) is added to the destinations' own rows in
  // the same pass.
  at::Tensor AggregateTransposed(const at::Tensor& grad, const at::Tensor& grad_self);

  // Forward for sources in a table of rows: row `index[e]` for edge e, `self_index[d]` for
  // destination d. The bottom layer reads the feature store through this.
  void AggregateFromTable(const RowTable& table, const uint32_t* index, const uint32_t* self_index,
                          T* out) const
    requires(!std::same_as<T, double>);

  const BlockView& block() const { return block_; }

 private:
  template <typename Element>
  void Gather(const Element* x, uint64_t columns, const uint32_t* index, const uint32_t* self_index,
              T* out) const;
  void Transpose();
  const Sum* ScaledWeights() const;
  MeanScales<Sum> Scales() const;

  BlockView block_;
  Reduction reduction_;
  Workspace* workspace_;
  const Sum* edge_weight_ = nullptr;  // null = 1
  const Sum* self_weight_ = nullptr;  // null = no self term
  Sum* scale_ = nullptr;              // kMean: 1 / sum of weights; kSum without weights: 1
  uint32_t* transposed_indptr_ = nullptr;
  uint32_t* transposed_dst_ = nullptr;
  Sum* transposed_weight_ = nullptr;
};

// Returns {aggregated, self}: self is x's first num_dst rows (the same memory), so that backward
// joins both gradients in one pass over the transposed block. Undefined if `with_self` is false.
std::pair<at::Tensor, at::Tensor> Aggregate(const at::Tensor& x, const BlockView& block,
                                            Reduction reduction, bool with_self,
                                            Workspace* workspace);

// x weight^T + x_self weight_self^T + bias + addend; undefined terms are left out.
struct AffineInput {
  at::Tensor x;            // [rows, in]
  at::Tensor weight;       // [out, in]
  at::Tensor x_self;       // [rows, in] or undefined
  at::Tensor weight_self;  // [out, in] or undefined
  at::Tensor bias;         // [out] or undefined
  at::Tensor addend = {};  // [rows, out] or undefined
  // If x is bfloat16: result and `addend` are float32; else both are like x.
  bool wide = false;
};
at::Tensor Affine(const AffineInput& input, Workspace* workspace);

// `rows` in the given type, in place or converted between float32 and bfloat16 in the workspace.
at::Tensor AsRowsOf(at::ScalarType type, const at::Tensor& rows, Workspace* workspace);

// Keyed dropout of probability `p` on relu(z), in place; `nodes` are the rows' global ids.
struct DropoutSite {
  DropoutKey key;
  const uint32_t* nodes = nullptr;
  float p = 0;
};
at::Tensor ReluDropout(const at::Tensor& z, const DropoutSite& site, Workspace* workspace);

// Such dropout of packed rows.
template <typename T>
DropoutRows<T, SumOf<T>> DropoutOf(const DropoutSite& site, const at::Tensor& rows) {
  using Scale = SumOf<T>;
  DropoutRows<T, Scale> op;
  op.key = site.key;
  op.nodes = site.nodes;
  op.rows = static_cast<T*>(rows.data_ptr());
  op.stride = static_cast<uint64_t>(rows.size(1));
  op.columns = static_cast<uint32_t>(rows.size(1));
  op.threshold = DropoutThreshold(site.p);
  op.scale = Scale{1} / (Scale{1} - static_cast<Scale>(site.p));
  return op;
}

}  // namespace gnnd
