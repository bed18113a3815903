#include "core/model/model_spec.h"

#include <utility>

namespace gnnd {
namespace {

constexpr uint64_t kAlignmentFloats = 16;  // tensors start on cache lines

}  // namespace

void Append(ParameterTensor tensor, ParameterManifest* manifest) {
  tensor.offset = manifest->num_floats;
  const uint64_t end = tensor.offset + tensor.size();
  manifest->num_floats = (end + kAlignmentFloats - 1) / kAlignmentFloats * kAlignmentFloats;
  manifest->tensors.push_back(std::move(tensor));
}

LayerShape ShapeOf(const ModelSpec& spec, uint32_t layer) {
  if (KindOf(spec.type).input == ModelInput::kScript) {
    return {layer == 0 ? spec.in_dim : spec.widths[layer - 1], spec.widths[layer]};
  }
  // Models over relations project their input rows first.
  const bool is_given = layer == 0 && !TakesRelations(spec.type);
  return {is_given ? spec.in_dim : spec.hidden_dim,
          layer + 1 == spec.num_layers ? spec.out_dim : spec.hidden_dim};
}

uint32_t SizeOf(LayerSize size, const ModelSpec& spec, uint32_t layer) {
  const LayerShape shape = ShapeOf(spec, layer);
  const bool is_last = layer + 1 == spec.num_layers;
  return SizeOf(size, LayerPlace{shape.in, shape.out, spec.hidden_dim, spec.heads, is_last});
}

bool HasResidualProjection(const ModelSpec& spec, uint32_t layer) {
  const LayerShape shape = ShapeOf(spec, layer);
  return spec.residual && (IsAttention(spec.type) || shape.in != shape.out);
}

}  // namespace gnnd
