#pragma once

#include <ATen/core/Tensor.h>

#include "train/ops/workspace.h"

namespace gnnd {

// Products of rows and weights, in float32 or bfloat16 with float32 sums: the kernels of product.h
// on the caller's team. Rows are taken in stretches of a few fixed heights, the last rows padded
// with zeros, so that there are few kernels, and no bit depends on the number of threads. float64,
// for tests only, runs on torch.

// out = x weight^T + x_self weight_self^T + addend + bias; undefined terms are left out.
struct AffineOp {
  at::Tensor x;            // [rows, in], contiguous; all of one type with x_self
  at::Tensor weight;       // float32 [out, in], or the transposed view of a contiguous one
  at::Tensor x_self;       // [rows, in_self]
  at::Tensor weight_self;  // float32 [out, in_self], like `weight`
  at::Tensor addend;       // [rows, out], like `out`; may be `out` itself
  at::Tensor bias;         // float32 [out]
  at::Tensor out;          // [rows, out], contiguous: bfloat16 or float32, float32 for x in float32
};
// Weights are first converted to the kernels' form, rounded to x's type; `workspace` holds them.
void RunAffine(const AffineOp& op, Workspace* workspace);

// Sets out = grad^T x: [columns of grad, columns of x], float32 (float64 for float64 operands), for
// contiguous matrices of one type with the same number of rows. The order of the sum over rows
// depends on their number alone.
void TransposedProductInto(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& out);

}  // namespace gnnd
