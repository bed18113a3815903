#pragma once

#include <ATen/core/Tensor.h>

#include "core/draw/dropout.h"
#include "train/ops/ops.h"
#include "train/ops/workspace.h"

// The differentiable operators of models over rows, besides Affine, ReluDropout and LayerNorm: in
// float32, and float64 for tests, by the operators of the workspace's device (operators.h). Sums
// over rows do not depend on the number of threads.

namespace gnnd {

struct BatchMoments {
  at::Tensor mean;      // [columns]
  at::Tensor variance;  // [columns], over rows - 1 if there are two or more
};

// torch.nn.BatchNorm1d in training (epsilon 1e-5): normalises x [rows, columns] by its own mean and
// variance, and returns them in `moments`.
at::Tensor BatchNorm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                     BatchMoments* moments, Workspace* workspace);
// Batch normalisation in evaluation, by running moments. No gradients.
at::Tensor BatchNormBy(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                       const BatchMoments& moments, Workspace* workspace);

// torch.nn.PReLU with one slope, [1].
at::Tensor PRelu(const at::Tensor& x, const at::Tensor& slope, Workspace* workspace);

// Keyed dropout of rows; returns x itself if p is 0.
at::Tensor Dropout(const at::Tensor& x, const DropoutSite& site, Workspace* workspace);

// Attention of each row's queries over its tokens, without projections.
struct TokenAttention {
  at::Tensor query;  // [rows, queries, width]
  at::Tensor key;    // [rows, tokens, width]
  at::Tensor value;  // [rows, tokens, width]
  uint32_t heads = 1;
  DropoutSite dropout = {};  // dropout of probabilities; key.layer is the model's layer
};
// softmax(Q K^T / root of the head's width) V: [rows, queries, width].
at::Tensor AttendTokens(const TokenAttention& input, Workspace* workspace);

}  // namespace gnnd
