#pragma once

#include <ATen/core/Tensor.h>

#include "train/workspace.h"

namespace gnnd {

// Products of matrices in bfloat16 whose sums are kept in float32: on oneDNN where the processor
// has products of bfloat16 (AVX512-BF16, AMX) or AVX-512, else on OpenBLAS after widening. Rows are
// taken in stretches of one fixed height, the last one filled up with zeros: so the kernels are
// few, and an element's sum depends on its own row alone, whatever the number of threads or rows.

// out = x weight^T + x_self weight_self^T + addend + bias; all but the first product where defined.
struct NarrowAffine {
  at::Tensor x;            // bfloat16 [rows, in], contiguous
  at::Tensor weight;       // float32 [out, in], or the transposed view of a contiguous one
  at::Tensor x_self;       // bfloat16 [rows, in_self]
  at::Tensor weight_self;  // float32 [out, in_self], as `weight`
  at::Tensor addend;       // [rows, out], like `out`
  at::Tensor bias;         // float32 [out]
  at::Tensor out;          // bfloat16 or float32 [rows, out], contiguous
};
// The weights are rounded to bfloat16 once. `workspace` holds them meanwhile.
void RunNarrowAffine(const NarrowAffine& op, Workspace* workspace);

// out = grad^T x: float32 [columns of grad, columns of x], of bfloat16 matrices with as many rows.
// The rows are summed in order, stretch by stretch.
void NarrowTransposedProduct(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& out);

}  // namespace gnnd
