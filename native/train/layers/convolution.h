#pragma once

#include <ATen/core/Tensor.h>

#include "train/layers/layer.h"

// A sum over edges and a product with a matrix, in the cheaper order.

namespace gnnd {

// weight (sum over edges of x) + weight_self x_self + bias, where the layer has the latter two.
struct ConvolutionWeights {
  at::Tensor weight;
  at::Tensor weight_self;
  at::Tensor bias;
};

// `wide`: float32 whatever the rows are.
at::Tensor Convolve(const LayerContext& context, const ConvolutionWeights& weights,
                    const at::Tensor& x, bool wide);
// From what was gathered of features.
at::Tensor ConvolveFused(const LayerContext& context, const ConvolutionWeights& weights,
                         const BottomInput& input, bool wide);
// Into `out`, of an exact evaluation.
void ConvolveExactly(ExactRows* rows, const ConvolutionWeights& weights, const at::Tensor& out);

}  // namespace gnnd
