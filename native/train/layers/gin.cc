#include <ATen/ops/mul.h>

#include "train/layers/convolution.h"
#include "train/layers/layers.h"
#include "train/ops/after_layer.h"
#include "train/ops/ops.h"

namespace gnnd {
namespace {

// Xu et al., ICLR 2019: a perceptron of two layers on (1 + epsilon) times a row plus the sum of its
// neighbours' rows. So the first matrix is a convolution's for neighbours, and 1 + epsilon times
// itself for the row. The hidden columns are the model's; no hidden row is normalised.
class Gin final : public Layer {
 public:
  at::Tensor Forward(const LayerContext& context, const at::Tensor& x) const override {
    return Second(context, Convolve(context, FirstOf(context.parameters), x, /*wide=*/false));
  }
  at::Tensor ForwardFused(const LayerContext& context, const BottomInput& input) const override {
    return Second(context,
                  ConvolveFused(context, FirstOf(context.parameters), input, /*wide=*/false));
  }

  void TransformExactly(ExactRows* rows, const at::Tensor& out) const override {
    rows->Affine({rows->Input(), (*rows)[TensorRole::kWeight], {}, {}, {}, {}, out});
  }
  void RunExactly(ExactRows* rows, const at::Tensor& out) const override {
    const at::Tensor hidden = rows->Empty(rows->spec().hidden_dim);
    ConvolveExactly(rows, FirstOf(rows->parameters()), hidden);
    FinishLayerInPlace(Within(rows->spec()), hidden, {}, {}, rows->memory());
    rows->Affine({hidden,
                  (*rows)[TensorRole::kSecondWeight],
                  {},
                  {},
                  {},
                  (*rows)[TensorRole::kSecondBias],
                  out});
  }

 private:
  static ConvolutionWeights FirstOf(const LayerParameters& mine) {
    const at::Tensor& weight = mine[TensorRole::kWeight];
    return {weight, weight.mul(mine[TensorRole::kEpsilon].add(1)), mine[TensorRole::kBias]};
  }

  static at::Tensor Second(const LayerContext& context, const at::Tensor& first) {
    const at::Tensor hidden =
        FinishLayer(Within(context.model.spec), first, {}, {}, DropoutSite(), context.workspace);
    AffineInput second{
        hidden, context[TensorRole::kSecondWeight], {}, {}, context[TensorRole::kSecondBias]};
    second.wide = context.last();
    return Affine(second, context.workspace);
  }

  // The spec after the perceptron's first layer: the model's activation and nothing else.
  static ModelSpec Within(const ModelSpec& of) {
    ModelSpec spec = of;
    spec.normalization = Normalization::kNone;
    return spec;
  }
};

}  // namespace

const Layer& GinLayer() {
  static const Gin layer;
  return layer;
}

}  // namespace gnnd
