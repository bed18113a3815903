#include <ATen/ops/mean.h>

#include "train/layers/layers.h"
#include "train/ops/attention.h"
#include "train/ops/ops.h"

namespace gnnd {
namespace {

// GAT (Velickovic et al., ICLR 2018), and GATv2 (Brody et al., ICLR 2022), whose layers transform
// destinations by a matrix of their own.
class Attention final : public Layer {
 public:
  at::Tensor Forward(const LayerContext& context, const at::Tensor& x) const override {
    const ModelSpec& spec = context.model.spec;
    Workspace* workspace = context.workspace;
    const BatchKey& key = context.key;
    const auto project = [workspace](const at::Tensor& rows, const at::Tensor& weight,
                                     const at::Tensor& bias) {
      return Affine({rows, weight, {}, {}, bias, {}, /*wide=*/true}, workspace);
    };
    AttentionInput input;  // computes in float32
    input.attention = context[TensorRole::kAttentionSource];
    input.attention_destination = context[TensorRole::kAttentionDestination];
    input.source = project(x, context[TensorRole::kWeight], context[TensorRole::kWeightBias]);
    if (context[TensorRole::kWeightSelf].defined()) {
      input.destination = project(context.OwnRows(x), context[TensorRole::kWeightSelf],
                                  context[TensorRole::kWeightSelfBias]);
    }
    const AttentionDropout dropout{{key.random_seed, key.epoch, key.batch, context.layer},
                                   context.nodes,
                                   spec.attention_dropout};
    at::Tensor out = Attend(input, context.block, dropout, workspace);
    if (context.last()) out = out.view({context.block.num_dst, spec.heads, -1}).mean(1);
    return out.add_(context[TensorRole::kBias]);
  }

  void TransformExactly(ExactRows* rows, const at::Tensor& out) const override {
    rows->Affine({rows->Input(),
                  (*rows)[TensorRole::kWeight],
                  {},
                  {},
                  {},
                  (*rows)[TensorRole::kWeightBias],
                  out});
    const at::Tensor& destination = (*rows)[TensorRole::kAttentionDestination];
    if (!destination.defined()) return;
    const at::Tensor& source = (*rows)[TensorRole::kAttentionSource];
    rows->PutScores(ExactRows::Side::kSource, AttentionScores(out, source, rows->memory()));
    rows->PutScores(ExactRows::Side::kDestination,
                    AttentionScores(out, destination, rows->memory()));
  }

  void RunExactly(ExactRows* rows, const at::Tensor& out) const override {
    const ModelSpec& spec = rows->spec();
    const uint32_t wide = SizeOf(LayerSize::kWide, spec, rows->layer());
    at::Tensor destination;
    if ((*rows)[TensorRole::kWeightSelf].defined()) {
      destination = rows->Empty(wide);
      rows->Affine({rows->Input(),
                    (*rows)[TensorRole::kWeightSelf],
                    {},
                    {},
                    {},
                    (*rows)[TensorRole::kWeightSelfBias],
                    destination});
    }
    const at::Tensor attended = rows->last() ? rows->Empty(wide) : out;
    rows->Attend(destination, attended);
    if (rows->last()) {
      at::mean_out(const_cast<at::Tensor&>(out), attended.view({out.size(0), spec.heads, -1}), 1);
    }
    out.add_((*rows)[TensorRole::kBias]);
  }
};

}  // namespace

const Layer& AttentionLayer() {
  static const Attention layer;
  return layer;
}

}  // namespace gnnd
