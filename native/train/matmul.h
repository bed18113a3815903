#pragma once

#include <ATen/core/Tensor.h>

namespace gnnd {

// out = a b, or out += a b with `add`. Two-dimensional, of one floating type; a and b may be
// transposed views of contiguous matrices, out is contiguous and overlaps neither.
//
// float32 runs on OpenBLAS, on the caller's OpenMP threads: on AMD processors it makes twice the
// products of torch's own (MKL), on Intel's as many. Which kernels it takes decides bits:
// OPENBLAS_CORETYPE, set by the daemon beside MKL_CBWR; how many threads share the rows, too, since
// a product rounds by its height. float64, of the tests, runs on torch.
void MatMul(const at::Tensor& a, const at::Tensor& b, bool add, const at::Tensor& out);

}  // namespace gnnd
