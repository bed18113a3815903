#include <ATen/ops/mean.h>

#include "train/layers/layers.h"
#include "train/ops/attention.h"
#include "train/ops/ops.h"

namespace gnnd {
namespace {

// Shi et al., IJCAI 2021, like torch_geometric's TransformerConv without edge features and without
// a gate: attention by products of queries and keys, plus the row itself times a matrix.
class Transformer final : public Layer {
 public:
  at::Tensor Forward(const LayerContext& context, const at::Tensor& x) const override {
    const ModelSpec& spec = context.model.spec;
    const BatchKey& key = context.key;
    const auto project = [&](const at::Tensor& rows, TensorRole weight, TensorRole bias) {
      return Affine({rows, context[weight], {}, {}, context[bias], {}, /*wide=*/true},
                    context.workspace);
    };
    AttentionInput input;  // computes in float32
    input.key = project(x, TensorRole::kKey, TensorRole::kKeyBias);
    input.source = project(x, TensorRole::kWeight, TensorRole::kWeightBias);
    const at::Tensor own = context.OwnRows(x);
    input.destination = project(own, TensorRole::kWeightSelf, TensorRole::kWeightSelfBias);
    input.heads = spec.heads;
    const AttentionDropout dropout{{key.random_seed, key.epoch, key.batch, context.layer},
                                   context.nodes,
                                   spec.attention_dropout};
    at::Tensor attended = Attend(input, context.block, dropout, context.workspace);
    if (context.last()) {
      attended = attended.view({context.block.num_dst, spec.heads, -1}).mean(1);
    }
    return Affine({own,
                   context[TensorRole::kSkip],
                   {},
                   {},
                   context[TensorRole::kBias],
                   attended,
                   /*wide=*/true},
                  context.workspace);
  }

  // Writes each row's key, followed by its value.
  void TransformExactly(ExactRows* rows, const at::Tensor& out) const override {
    const int64_t wide = out.size(1) / 2;
    const at::Tensor half = rows->Empty(static_cast<uint64_t>(wide));
    const auto put = [&](int64_t at, TensorRole weight, TensorRole bias) {
      rows->Affine({rows->Input(), (*rows)[weight], {}, {}, {}, (*rows)[bias], half});
      out.narrow(1, at, wide).copy_(half);
    };
    put(0, TensorRole::kKey, TensorRole::kKeyBias);
    put(wide, TensorRole::kWeight, TensorRole::kWeightBias);
  }

  void RunExactly(ExactRows* rows, const at::Tensor& out) const override {
    const ModelSpec& spec = rows->spec();
    const uint32_t wide = SizeOf(LayerSize::kWide, spec, rows->layer());
    const at::Tensor query = rows->Empty(wide);
    rows->Affine({rows->Input(),
                  (*rows)[TensorRole::kWeightSelf],
                  {},
                  {},
                  {},
                  (*rows)[TensorRole::kWeightSelfBias],
                  query});
    const at::Tensor attended = rows->Empty(wide);
    rows->Attend(query, attended);
    at::Tensor sums = attended;
    if (rows->last()) sums = attended.view({out.size(0), spec.heads, -1}).mean(1);
    rows->Affine(
        {rows->Input(), (*rows)[TensorRole::kSkip], {}, {}, sums, (*rows)[TensorRole::kBias], out});
  }
};

}  // namespace

const Layer& TransformerLayer() {
  static const Transformer layer;
  return layer;
}

}  // namespace gnnd
