#include "train/layers/convolution.h"

#include <ATen/ops/add.h>

#include "train/layers/layers.h"
#include "train/ops/ops.h"

namespace gnnd {
namespace {

at::Tensor TransformThenGather(const LayerContext& context, const ConvolutionWeights& weights,
                               const at::Tensor& x, bool wide) {
  AffineInput transform;
  transform.x = x;
  transform.weight = weights.weight;
  const at::Tensor transformed = Affine(transform, context.workspace);
  const at::Tensor sum =
      Aggregate(transformed, context.block, ReductionOf(context.model.spec, context.model.shares),
                /*with_self=*/false, context.workspace)
          .first;
  if (!weights.weight_self.defined()) return sum.add(weights.bias);
  AffineInput own;
  own.wide = wide;
  own.x = context.OwnRows(x);
  own.weight = weights.weight_self;
  own.bias = weights.bias;
  own.addend = own.wide ? Widened(sum, context.workspace) : sum;
  return Affine(own, context.workspace);
}

// GraphSAGE (Hamilton et al., NeurIPS 2017) and GCN (Kipf and Welling, ICLR 2017).
class Convolution final : public Layer {
 public:
  at::Tensor Forward(const LayerContext& context, const at::Tensor& x) const override {
    return Convolve(context, WeightsOf(context.parameters), x, context.last());
  }
  at::Tensor ForwardFused(const LayerContext& context, const BottomInput& input) const override {
    return ConvolveFused(context, WeightsOf(context.parameters), input, context.last());
  }
  void TransformExactly(ExactRows* rows, const at::Tensor& out) const override {
    rows->Affine({rows->Input(), (*rows)[TensorRole::kWeight], {}, {}, {}, {}, out});
  }
  void RunExactly(ExactRows* rows, const at::Tensor& out) const override {
    ConvolveExactly(rows, WeightsOf(rows->parameters()), out);
  }

 private:
  static ConvolutionWeights WeightsOf(const LayerParameters& mine) {
    return {mine[TensorRole::kWeight], mine[TensorRole::kWeightSelf], mine[TensorRole::kBias]};
  }
};

}  // namespace

at::Tensor Convolve(const LayerContext& context, const ConvolutionWeights& weights,
                    const at::Tensor& x, bool wide) {
  const BlockView& block = context.block;
  const auto in = static_cast<uint64_t>(weights.weight.size(1));
  const auto out = static_cast<uint64_t>(weights.weight.size(0));
  if (TransformFirst(block.num_dst, block.num_src, block.src.size(), in, out)) {
    return TransformThenGather(context, weights, x, wide);
  }
  const auto [gathered, self] =
      Aggregate(x, block, ReductionOf(context.model.spec, context.model.shares),
                weights.weight_self.defined(), context.workspace);
  AffineInput affine{gathered, weights.weight, self, weights.weight_self, weights.bias};
  affine.wide = wide;
  return Affine(affine, context.workspace);
}

at::Tensor ConvolveFused(const LayerContext& context, const ConvolutionWeights& weights,
                         const BottomInput& input, bool wide) {
  AffineInput affine{input.aggregated, weights.weight, input.self, weights.weight_self,
                     weights.bias};
  affine.wide = wide;
  return Affine(affine, context.workspace);
}

void ConvolveExactly(ExactRows* rows, const ConvolutionWeights& weights, const at::Tensor& out) {
  if (rows->transforms_first()) {
    rows->GatherTransformed(out);
    out.add_(weights.bias);
    if (!weights.weight_self.defined()) return;
    rows->Affine({rows->Input(), weights.weight_self, {}, {}, out, {}, out});
    return;
  }
  AffineOp op{rows->Gathered(), weights.weight, {}, {}, {}, weights.bias, out};
  if (weights.weight_self.defined()) {
    op.x_self = rows->Input();
    op.weight_self = weights.weight_self;
  }
  rows->Affine(op);
}

const Layer& ConvolutionLayer() {
  static const Convolution layer;
  return layer;
}

}  // namespace gnnd
