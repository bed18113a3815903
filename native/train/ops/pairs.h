#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "train/ops/ops.h"
#include "train/ops/workspace.h"

// The differentiable operators of heads over pairs of rows, in float32 and float64.

namespace gnnd {

// The rows of x, [n, d], at these places, [places.size(), d]. `places` are in the host's memory.
at::Tensor RowsAt(const at::Tensor& x, std::span<const uint32_t> places, Workspace* workspace);

// The scalar products of rows: out[i][j] = left[i] . right[i * each + j], [n, each]; left is
// [n, d], right [n * each, d], both contiguous.
at::Tensor DotsOfRows(const at::Tensor& left, const at::Tensor& right, int64_t each,
                      Workspace* workspace);

}  // namespace gnnd
