#pragma once

#include <ATen/core/Tensor.h>

#include "train/ops/workspace.h"

namespace gnnd {

// Products of rows and weights, in float32 or bfloat16, whose sums are kept in float32: the kernels
// of product.h on the caller's team. Rows are taken in stretches of a few fixed heights,
// the last few rows filled up with zeros. So the kernels are few, and no bit depends on the number
// of threads. float64, of the tests, runs on torch.

// out = x weight^T + x_self weight_self^T + addend + bias; all but the first product where defined.
struct AffineOp {
  at::Tensor x;            // [rows, in], contiguous; all of one type with x_self
  at::Tensor weight;       // float32 [out, in], or the transposed view of a contiguous one
  at::Tensor x_self;       // [rows, in_self]
  at::Tensor weight_self;  // float32 [out, in_self], as `weight`
  at::Tensor addend;       // [rows, out], like `out`; may be `out` itself
  at::Tensor bias;         // float32 [out]
  at::Tensor out;          // [rows, out], contiguous: bfloat16 or float32, float32 for x in float32
};
// Weights are brought into the kernels' form first, rounded to x's type; `workspace` holds them.
void RunAffine(const AffineOp& op, Workspace* workspace);

// out = grad^T x: [columns of grad, columns of x], float32 (float64 for such operands), of
// contiguous matrices of one type with as many rows. The order in which rows are summed depends on
// their number alone.
void TransposedProductInto(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& out);

}  // namespace gnnd
