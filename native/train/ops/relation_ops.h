#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <utility>

#include "core/batch/sample.h"
#include "train/ops/workspace.h"

// Differentiable operators of layers over relations, on the processor, for float32 and float64.
// Sums have a fixed order, so that bits depend neither on threads nor on the processor's kind.

namespace gnnd {

// A product of small matrices, which are weights: of each group g, scale[g] * left[g] right[g] for
// left [groups * rows, inner] and right [groups * inner, columns]; scale, [groups], may be
// undefined. Returns [groups * rows, columns].
at::Tensor ComposeWeights(const at::Tensor& left, const at::Tensor& right, const at::Tensor& scale,
                          int64_t groups, Workspace* workspace);

// x * Phi(x) with the normal distribution's Phi, as torch.nn.functional.gelu.
at::Tensor Gelu(const at::Tensor& x, Workspace* workspace);

// s * rows + (1 - s) * own for s = sigmoid(skip), skip being one number.
at::Tensor Gate(const at::Tensor& rows, const at::Tensor& own, const at::Tensor& skip,
                Workspace* workspace);

// Matrices of equal width, one below the other.
at::Tensor Stack(std::span<const at::Tensor> parts, Workspace* workspace);

// The means of x, [num_src, columns], over the edges of a block without weights, and x itself in
// the same memory. What reads x next takes the latter: its gradient is then added within the pass
// that makes the mean's, where torch would add up a matrix for each reader.
std::pair<at::Tensor, at::Tensor> MeanAndRows(const at::Tensor& x, const BlockView& block,
                                              Workspace* workspace);

// The first `count` rows of x, in the same memory.
at::Tensor FirstRows(const at::Tensor& x, int64_t count, Workspace* workspace);

// The error function to 5e-7 in float32, in operations that round the same everywhere.
float ErrorFunction(float x);

}  // namespace gnnd
