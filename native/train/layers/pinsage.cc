#include "train/layers/layers.h"
#include "train/ops/ops.h"

namespace gnnd {
namespace {

// Ying et al., KDD 2018, algorithm 1: neighbours are projected and rectified before their weighted
// mean; the matrix over the concatenation with the row itself is stored as two matrices.
class PinSage final : public Layer {
 public:
  at::Tensor Forward(const LayerContext& context, const at::Tensor& x) const override {
    Workspace* workspace = context.workspace;
    const at::Tensor affine =
        Affine({x, context[TensorRole::kProjection], {}, {}, context[TensorRole::kProjectionBias]},
               workspace);
    const at::Tensor projected = ReluDropout(affine, DropoutSite(), workspace);
    const at::Tensor mean =
        Aggregate(projected, context.block, ReductionOf(context.model.spec, context.model.shares),
                  /*with_self=*/false, workspace)
            .first;
    AffineInput joined{mean, context[TensorRole::kWeight], context.OwnRows(x),
                       context[TensorRole::kWeightSelf], context[TensorRole::kBias]};
    joined.wide = context.last();
    return Affine(joined, workspace);
  }

  void TransformExactly(ExactRows* rows, const at::Tensor& out) const override {
    rows->Affine({rows->Input(),
                  (*rows)[TensorRole::kProjection],
                  {},
                  {},
                  {},
                  (*rows)[TensorRole::kProjectionBias],
                  out});
    out.relu_();
  }

  void RunExactly(ExactRows* rows, const at::Tensor& out) const override {
    const at::Tensor mean = rows->Empty(ShapeOf(rows->spec(), rows->layer()).in);
    rows->GatherTransformed(mean);
    rows->Affine({mean,
                  (*rows)[TensorRole::kWeight],
                  rows->Input(),
                  (*rows)[TensorRole::kWeightSelf],
                  {},
                  (*rows)[TensorRole::kBias],
                  out});
  }
};

}  // namespace

const Layer& PinSageLayer() {
  static const PinSage layer;
  return layer;
}

}  // namespace gnnd
