#include "train/model.h"

#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

#include "train/ops.h"

namespace gnnd {
namespace {

// Moving one element through the aggregation costs about as much as so many multiply-adds in a GEMM
// (0.2 to 0.5 ns against 0.03 to 0.05, by where the rows lie).
constexpr uint64_t kMultiplyAddsPerGather = 8;

at::Tensor ForwardTransformFirst(const ModelSpec& spec, const LayerParameters& parameters,
                                 const BlockView& block, const at::Tensor& x,
                                 Workspace* workspace) {
  const at::Tensor transformed = x.mm(parameters.weight.t());
  const at::Tensor sum =
      Aggregate(transformed, block, ReductionOf(spec), /*with_self=*/false, workspace).first;
  if (spec.type == ModelType::kGcn) return sum.add(parameters.bias);
  const at::Tensor self = x.narrow(0, 0, block.num_dst);
  return at::addmm(sum.add(parameters.bias), self, parameters.weight_self.t());
}

at::Tensor ForwardLayer(const ModelSpec& spec, const LayerParameters& parameters,
                        const BlockView& block, const at::Tensor& x, Workspace* workspace) {
  const auto in = static_cast<uint64_t>(parameters.weight.size(1));
  const auto out = static_cast<uint64_t>(parameters.weight.size(0));
  if (TransformFirst(block.num_dst, block.num_src, block.src.size(), in, out)) {
    return ForwardTransformFirst(spec, parameters, block, x, workspace);
  }
  const bool sage = spec.type == ModelType::kGraphSage;
  const auto [aggregated, self] = Aggregate(x, block, ReductionOf(spec), sage, workspace);
  return Affine({aggregated, parameters.weight, self, parameters.weight_self, parameters.bias},
                workspace);
}

}  // namespace

Reduction ReductionOf(const ModelSpec& spec) {
  return spec.type == ModelType::kGraphSage ? Reduction::kMean : Reduction::kWeightedSum;
}

bool TransformFirst(uint64_t num_dst, uint64_t num_src, uint64_t num_edges, uint64_t in,
                    uint64_t out) {
  const uint64_t gathers = num_edges * kMultiplyAddsPerGather;
  return num_src * in * out + gathers * out < num_dst * in * out + gathers * in;
}

LayerParameters ParametersOf(const ModelSpec& spec, std::span<const at::Tensor> parameters,
                             uint32_t layer) {
  if (spec.type == ModelType::kGraphSage) {
    return {parameters[3 * layer], parameters[3 * layer + 1], parameters[3 * layer + 2]};
  }
  return {parameters[2 * layer + 1], parameters[2 * layer], at::Tensor()};
}

LayerShape ShapeOf(const ModelSpec& spec, uint32_t layer) {
  return {layer == 0 ? spec.in_dim : spec.hidden_dim,
          layer + 1 == spec.num_layers ? spec.out_dim : spec.hidden_dim};
}

at::Tensor ForwardBlocks(const ModelSpec& spec, std::span<const at::Tensor> parameters,
                         const RecordView& record, const BottomInput& input, Workspace* workspace) {
  const BatchKey key = record.key();
  at::Tensor h = input.x;
  for (uint32_t layer = 0; layer < spec.num_layers; ++layer) {
    const BlockView block = record.block(spec.num_layers - 1 - layer);
    const LayerParameters mine = ParametersOf(spec, parameters, layer);
    if (layer == 0 && input.aggregated.defined()) {
      h = Affine({input.aggregated, mine.weight, input.self, mine.weight_self, mine.bias},
                 workspace);
    } else {
      h = ForwardLayer(spec, mine, block, h, workspace);
    }
    if (layer + 1 == spec.num_layers) break;
    const DropoutSite site{
        {key.random_seed, key.epoch, key.batch, layer + 1}, record.nodes().data(), spec.dropout};
    h = ReluDropout(h, site, workspace);
  }
  return h;
}

}  // namespace gnnd
