#pragma once

#include <ATen/core/Tensor.h>

#include "train/layers/layer.h"

// A sum over edges and a product with a matrix, in the cheaper order.

namespace gnnd {

// Computes weight (sum over edges of x) + weight_self x_self + bias, the latter two if present.
struct ConvolutionWeights {
  at::Tensor weight;
  at::Tensor weight_self;
  at::Tensor bias;
};

// `wide`: computes in float32, whatever the type of the rows.
at::Tensor Convolve(const LayerContext& context, const ConvolutionWeights& weights,
                    const at::Tensor& x, bool wide);
// Convolve for features that extraction has gathered already.
at::Tensor ConvolveFused(const LayerContext& context, const ConvolutionWeights& weights,
                         const BottomInput& input, bool wide);
// Convolve of an exact evaluation, into `out`.
void ConvolveExactly(ExactRows* rows, const ConvolutionWeights& weights, const at::Tensor& out);

}  // namespace gnnd
