#include "train/layers/model.h"

#include <ATen/ops/add.h>
#include <ATen/ops/mm.h>

#include <utility>

#include "core/base/check.h"
#include "train/ops/after_layer.h"
#include "train/ops/attention.h"
#include "train/ops/ops.h"

namespace gnnd {
namespace {

// Moving one element through the aggregation costs about as much as so many multiply-adds in a GEMM
// (0.2 to 0.5 ns against 0.03 to 0.05, by where the rows lie).
constexpr uint64_t kMultiplyAddsPerGather = 8;

// What one layer of one batch computes with.
struct LayerContext {
  const Model& model;
  uint32_t layer;
  LayerParameters parameters;
  BlockView block;
  BatchKey key;
  const uint32_t* nodes;  // global ids of the block's rows
  Workspace* workspace;

  // Logits are float32 whatever the rows are that they are made of.
  bool last() const { return layer + 1 == model.spec.num_layers; }
};

at::Tensor OwnRows(const LayerContext& context, const at::Tensor& x) {
  return x.narrow(0, 0, context.block.num_dst);
}

// Rows in bfloat16 as float32; others as they are.
at::Tensor Widened(const at::Tensor& rows, Workspace* workspace) {
  return rows.scalar_type() == at::kBFloat16 ? AsRowsOf(at::kFloat, rows, workspace) : rows;
}

at::Tensor TransformThenAggregate(const LayerContext& context, const at::Tensor& x) {
  const LayerParameters& parameters = context.parameters;
  AffineInput transform;
  transform.x = x;
  transform.weight = parameters.weight;
  const at::Tensor transformed = Affine(transform, context.workspace);
  const at::Tensor sum =
      Aggregate(transformed, context.block, ReductionOf(context.model.spec, context.model.shares),
                /*with_self=*/false, context.workspace)
          .first;
  if (!parameters.weight_self.defined()) return sum.add(parameters.bias);
  AffineInput own;
  own.wide = context.last();
  own.x = OwnRows(context, x);
  own.weight = parameters.weight_self;
  own.bias = parameters.bias;
  own.addend = own.wide ? Widened(sum, context.workspace) : sum;
  return Affine(own, context.workspace);
}

// GraphSAGE and GCN.
at::Tensor ConvolutionLayer(const LayerContext& context, const at::Tensor& x) {
  const LayerParameters& parameters = context.parameters;
  const BlockView& block = context.block;
  const auto in = static_cast<uint64_t>(parameters.weight.size(1));
  const auto out = static_cast<uint64_t>(parameters.weight.size(0));
  if (TransformFirst(block.num_dst, block.num_src, block.src.size(), in, out)) {
    return TransformThenAggregate(context, x);
  }
  const bool sage = parameters.weight_self.defined();
  const auto [aggregated, self] = Aggregate(
      x, block, ReductionOf(context.model.spec, context.model.shares), sage, context.workspace);
  AffineInput affine{aggregated, parameters.weight, self, parameters.weight_self, parameters.bias};
  affine.wide = context.last();
  return Affine(affine, context.workspace);
}

// Ying et al., KDD 2018, algorithm 1: neighbours are projected and rectified before their weighted
// mean; a matrix over the concatenation with the row itself is two matrices.
at::Tensor PinSageLayer(const LayerContext& context, const at::Tensor& x) {
  const LayerParameters& parameters = context.parameters;
  Workspace* workspace = context.workspace;
  const at::Tensor affine =
      Affine({x, parameters.projection, {}, {}, parameters.projection_bias}, workspace);
  const at::Tensor projected = ReluDropout(affine, DropoutSite(), workspace);
  const at::Tensor mean =
      Aggregate(projected, context.block, ReductionOf(context.model.spec, context.model.shares),
                /*with_self=*/false, workspace)
          .first;
  AffineInput joined{mean, parameters.weight, OwnRows(context, x), parameters.weight_self,
                     parameters.bias};
  joined.wide = context.last();
  return Affine(joined, workspace);
}

at::Tensor AttentionLayer(const LayerContext& context, const at::Tensor& x) {
  const LayerParameters& parameters = context.parameters;
  const ModelSpec& spec = context.model.spec;
  Workspace* workspace = context.workspace;
  const BatchKey& key = context.key;
  AttentionInput input;  // computes in float32
  input.attention = parameters.attention_source;
  const auto project = [workspace](const at::Tensor& rows, const at::Tensor& weight,
                                   const at::Tensor& bias) {
    return Affine({rows, weight, {}, {}, bias, {}, /*wide=*/true}, workspace);
  };
  if (spec.type == ModelType::kGat) {
    input.source = project(x, parameters.weight, {});
    input.attention_destination = parameters.attention_destination;
  } else {
    input.source = project(x, parameters.weight, parameters.weight_bias);
    input.destination =
        project(OwnRows(context, x), parameters.weight_self, parameters.weight_self_bias);
  }
  const AttentionDropout dropout{{key.random_seed, key.epoch, key.batch, context.layer},
                                 context.nodes,
                                 spec.attention_dropout};
  at::Tensor out = Attend(input, context.block, dropout, workspace);
  if (context.last()) {
    out = out.view({context.block.num_dst, spec.heads, -1}).mean(1);
  }
  return out.add_(parameters.bias);
}

at::Tensor ForwardLayer(const LayerContext& context, const at::Tensor& x) {
  switch (context.model.spec.type) {
    case ModelType::kGat:
    case ModelType::kGatV2:
      return AttentionLayer(context, x);
    case ModelType::kPinSage:
      return PinSageLayer(context, x);
    case ModelType::kGraphSage:
    case ModelType::kGcn:
      return ConvolutionLayer(context, x);
    case ModelType::kScript:
    case ModelType::kSgc:
    case ModelType::kSign:
    case ModelType::kHoga:
      break;  // has a forward of its own
  }
  GNND_CHECK(false);
  return x;
}

// z plus the layer's own input rows, projected where the layer has a matrix for that.
at::Tensor AddResidual(const LayerContext& context, const at::Tensor& own, const at::Tensor& z) {
  const at::Tensor& projection = context.parameters.residual;
  if (!projection.defined()) return z.add(own);
  AffineInput input;
  input.x = own;
  input.weight = projection;
  input.addend = z;
  input.wide = z.scalar_type() == at::kFloat;
  return Affine(input, context.workspace);
}

// The rows of a kept level, of which the layer gave `computed`, with dropout.
at::Tensor KeptRows(const Model& model, TrainerHistory* history, uint32_t level,
                    const at::Tensor& computed, const Sample& sample, Workspace* workspace) {
  // A layer's rows may be wider than they are kept, by the order in which it was computed.
  const at::ScalarType type = history->RowType(model.spec.hidden_dim);
  const at::Tensor merged = history->Merge(level, AsRowsOf(type, computed, workspace), workspace);
  const BatchKey key = sample.key();
  const DropoutSite site{{key.random_seed, key.epoch, key.batch, level},
                         sample.block(model.spec.num_layers - 1 - level).nodes.data(),
                         model.spec.dropout};
  return DropRows(merged, site, workspace);
}

// By TensorRole.
constexpr at::Tensor LayerParameters::* kPlaces[] = {&LayerParameters::weight,
                                                     &LayerParameters::bias,
                                                     &LayerParameters::weight_self,
                                                     &LayerParameters::weight_bias,
                                                     &LayerParameters::weight_self_bias,
                                                     &LayerParameters::projection,
                                                     &LayerParameters::projection_bias,
                                                     &LayerParameters::attention_source,
                                                     &LayerParameters::attention_destination,
                                                     &LayerParameters::residual,
                                                     &LayerParameters::norm_scale,
                                                     &LayerParameters::norm_shift};

}  // namespace

Model::Model(const ModelSpec& of, bool with_shares) : spec(of), shares(with_shares) {
  auto described = ManifestOf(of);
  GNND_CHECK(described.ok());
  manifest = std::move(*described);
}

bool AggregatesFeatures(const ModelSpec& spec) {
  if (spec.type == ModelType::kGcn) return !spec.residual;  // else it needs own rows, too
  return spec.type == ModelType::kGraphSage;
}

Reduction ReductionOf(const ModelSpec& spec, bool shares) {
  return shares || spec.type == ModelType::kGcn ? Reduction::kWeightedSum : Reduction::kMean;
}

bool TransformFirst(uint64_t num_dst, uint64_t num_src, uint64_t num_edges, uint64_t in,
                    uint64_t out) {
  const uint64_t gathers = num_edges * kMultiplyAddsPerGather;
  return num_src * in * out + gathers * out < num_dst * in * out + gathers * in;
}

LayerParameters ParametersOf(const Model& model, std::span<const at::Tensor> parameters,
                             uint32_t layer) {
  LayerParameters mine;
  for (size_t t = 0; t < parameters.size(); ++t) {
    const ParameterTensor& tensor = model.manifest.tensors[t];
    if (tensor.layer == layer) mine.*kPlaces[static_cast<uint32_t>(tensor.role)] = parameters[t];
  }
  return mine;
}

at::Tensor ForwardBlocks(const Model& model, std::span<const at::Tensor> parameters,
                         const Sample& sample, const BottomInput& input, Workspace* workspace,
                         TrainerHistory* history) {
  const ModelSpec& spec = model.spec;
  const BatchKey key = sample.key();
  const at::ScalarType rows = (input.x.defined() ? input.x : input.aggregated).scalar_type();
  at::Tensor h = input.x;
  for (uint32_t layer = 0; layer < spec.num_layers; ++layer) {
    const BlockView& block = sample.block(spec.num_layers - 1 - layer);
    const uint32_t* nodes = block.nodes.empty() ? sample.nodes().data() : block.nodes.data();
    const LayerContext context{model, layer,    ParametersOf(model, parameters, layer), block, key,
                               nodes, workspace};
    const LayerParameters& mine = context.parameters;
    const bool fused = layer == 0 && input.aggregated.defined();
    at::Tensor z = fused ? Affine({input.aggregated,
                                   mine.weight,
                                   input.self,
                                   mine.weight_self,
                                   mine.bias,
                                   {},
                                   context.last()},
                                  workspace)
                         : ForwardLayer(context, h);
    if (spec.residual) z = AddResidual(context, fused ? input.self : OwnRows(context, h), z);
    if (context.last()) return Widened(z, workspace);
    DropoutSite site{{key.random_seed, key.epoch, key.batch, layer + 1}, nodes, spec.dropout};
    const bool is_kept = history != nullptr && history->keeps(layer + 1);
    if (is_kept) site.p = 0;
    h = FinishLayer(spec, z, mine.norm_scale, mine.norm_shift, site, workspace);
    if (is_kept) h = KeptRows(model, history, layer + 1, h, sample, workspace);
    if (rows == at::kBFloat16) h = AsRowsOf(rows, h, workspace);
  }
  return h;
}

}  // namespace gnnd
