#include "train/layers/model.h"

#include "train/layers/layers.h"
#include "train/ops/after_layer.h"
#include "train/ops/ops.h"

namespace gnnd {
namespace {

// Adds the layer's own input rows to z, through a projection if the layer has a matrix for that.
at::Tensor AddResidual(const LayerContext& context, const at::Tensor& own, const at::Tensor& z) {
  const at::Tensor& projection = context[TensorRole::kResidual];
  if (!projection.defined()) return z.add(own);
  AffineInput input;
  input.x = own;
  input.weight = projection;
  input.addend = z;
  input.wide = z.scalar_type() == at::kFloat;
  return Affine(input, context.workspace);
}

// The rows of a kept level, merged from `computed` and the history, with dropout.
at::Tensor KeptRows(const Model& model, TrainerHistory* history, uint32_t level,
                    const at::Tensor& computed, const Sample& sample, Workspace* workspace) {
  // A layer's rows may be wider than the kept ones, depending on the order of its computation.
  const at::ScalarType type = history->RowType(model.spec.hidden_dim);
  const at::Tensor merged = history->Merge(level, AsRowsOf(type, computed, workspace), workspace);
  const BatchKey key = sample.key();
  const DropoutSite site{{key.random_seed, key.epoch, key.batch, level},
                         sample.block(model.spec.num_layers - 1 - level).nodes.data(),
                         model.spec.dropout};
  return DropRows(merged, site, workspace);
}

}  // namespace

at::Tensor ForwardBlocks(const Model& model, std::span<const at::Tensor> parameters,
                         const Sample& sample, const BottomInput& input, Workspace* workspace,
                         TrainerHistory* history, const LayerTap& tap) {
  const ModelSpec& spec = model.spec;
  const Layer& kind = LayerOf(spec.type);
  const BatchKey key = sample.key();
  const at::ScalarType rows = (input.x.defined() ? input.x : input.aggregated).scalar_type();
  at::Tensor h = input.x;
  for (uint32_t layer = 0; layer < spec.num_layers; ++layer) {
    const BlockView& block = sample.block(spec.num_layers - 1 - layer);
    const uint32_t* nodes = block.nodes.empty() ? sample.nodes().data() : block.nodes.data();
    const LayerContext context{model, layer,    ParametersOf(model, parameters, layer), block, key,
                               nodes, workspace};
    const bool fused = layer == 0 && input.aggregated.defined();
    at::Tensor z = fused ? kind.ForwardFused(context, input) : kind.Forward(context, h);
    if (spec.residual) z = AddResidual(context, fused ? input.self : context.OwnRows(h), z);
    if (context.last()) {
      const at::Tensor logits = Widened(z, workspace);
      if (tap) tap(layer, logits);
      return logits;
    }
    DropoutSite site{{key.random_seed, key.epoch, key.batch, layer + 1}, nodes, spec.dropout};
    const bool is_kept = history != nullptr && history->keeps(layer + 1);
    if (is_kept) site.p = 0;
    h = FinishLayer(spec, z, context[TensorRole::kNormScale], context[TensorRole::kNormShift], site,
                    workspace);
    if (is_kept) h = KeptRows(model, history, layer + 1, h, sample, workspace);
    if (tap) tap(layer, h);
    if (rows == at::kBFloat16) h = AsRowsOf(rows, h, workspace);
  }
  return h;
}

}  // namespace gnnd
