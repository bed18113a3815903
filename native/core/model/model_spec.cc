#include "core/model/model_spec.h"

#include <utility>

#include "core/model/row_manifest.h"

namespace gnnd {
namespace {

constexpr uint32_t kMaxLayers = 8;      // a record holds at most so many hops
constexpr uint32_t kMaxDim = 1U << 18;  // dropout numbers 4-column groups of a row with 16 bits
constexpr uint32_t kMaxHeads = 64;
constexpr uint64_t kAlignmentFloats = 16;  // tensors start on cache lines

Status Invalid(const std::string& what) { return Status(Code::kInvalidArgument, what); }

Status CheckDimension(const char* name, uint32_t value) {
  if (value >= 1 && value <= kMaxDim) return Status::Ok();
  return Invalid(std::string(name) + " is " + std::to_string(value) + ", must be in 1.." +
                 std::to_string(kMaxDim));
}

Status CheckDropout(const char* name, float value) {
  if (value >= 0.0F && value < 1.0F) return Status::Ok();  // false for NaN
  return Invalid(std::string(name) + " must be in [0, 1)");
}

Status CheckEnums(const ModelSpec& spec) {
  if (spec.type == ModelType::kScript) return Invalid("the tensors of a script stand in its file");
  if (spec.type < ModelType::kGraphSage || spec.type > ModelType::kHoga) {
    return Invalid("unknown model type");
  }
  if (spec.activation < Activation::kRelu || spec.activation > Activation::kLeakyRelu) {
    return Invalid("unknown activation");
  }
  if (spec.normalization < Normalization::kNone || spec.normalization > Normalization::kLayer) {
    return Invalid("unknown normalization");
  }
  return Status::Ok();
}

Status CheckAttention(const ModelSpec& spec) {
  GNND_TRY(CheckDropout("attention_dropout", spec.attention_dropout));
  if (spec.type == ModelType::kHoga) return Status::Ok();  // CheckRowSpec's
  if (!IsAttention(spec.type)) {
    if (spec.heads != 1) return Invalid("heads must be 1 in a model without attention");
    if (spec.attention_dropout != 0.0F) {
      return Invalid("attention_dropout must be 0 in a model without attention");
    }
    return Status::Ok();
  }
  if (spec.heads < 1 || spec.heads > kMaxHeads) {
    return Invalid("heads is " + std::to_string(spec.heads) + ", must be in 1..64");
  }
  if (spec.num_layers > 1 && spec.hidden_dim % spec.heads != 0) {
    return Invalid("hidden_dim must be a multiple of heads");
  }
  if (uint64_t{spec.out_dim} * spec.heads > kMaxDim) {
    return Invalid("out_dim times heads must be in 1.." + std::to_string(kMaxDim));
  }
  return Status::Ok();
}

Status CheckSpec(const ModelSpec& spec) {
  GNND_TRY(CheckEnums(spec));
  if (spec.num_layers < 1 || spec.num_layers > kMaxLayers) {
    return Invalid("num_layers is " + std::to_string(spec.num_layers) + ", must be in 1..8");
  }
  GNND_TRY(CheckDimension("in_dim", spec.in_dim));
  GNND_TRY(CheckDimension("hidden_dim", spec.hidden_dim));
  GNND_TRY(CheckDimension("out_dim", spec.out_dim));
  GNND_TRY(CheckDropout("dropout", spec.dropout));
  GNND_TRY(CheckDropout("input_dropout", spec.input_dropout));
  if (spec.type == ModelType::kPinSage && spec.normalization == Normalization::kLayer) {
    return Invalid("normalization of PinSAGE is always L2");
  }
  GNND_TRY(CheckAttention(spec));
  return TakesRows(spec.type) ? CheckRowSpec(spec) : Status::Ok();
}

// Appends tensors to a manifest, each on a cache line.
class ManifestBuilder {
 public:
  void Weight(uint32_t layer, const char* suffix, TensorRole role, LayerShape shape, uint32_t fan) {
    Add(layer, "convs.", suffix, role, shape.out, shape.in).fan = fan;
  }

  void Bias(uint32_t layer, const char* suffix, TensorRole role, uint32_t size) {
    Add(layer, "convs.", suffix, role, size, 0).is_bias = true;
  }

  void Attention(uint32_t layer, const char* suffix, TensorRole role, uint32_t heads,
                 uint32_t columns) {
    ParameterTensor& tensor = Add(layer, "convs.", suffix, role, heads, columns);
    tensor.shape = {1, heads, columns};
    tensor.fan = heads + columns;
  }

  void Norm(uint32_t layer, const char* suffix, TensorRole role, uint32_t size, float fill) {
    ParameterTensor& tensor = Add(layer, "norms.", suffix, role, size, 0);
    tensor.is_bias = true;
    tensor.fill = fill;
  }

  ParameterManifest Take() { return std::move(manifest_); }

 private:
  ParameterTensor& Add(uint32_t layer, const char* list, const char* suffix, TensorRole role,
                       uint32_t rows, uint32_t cols) {
    ParameterTensor tensor;
    tensor.name = list + std::to_string(layer) + "." + suffix;
    tensor.rows = rows;
    tensor.cols = cols;
    tensor.layer = layer;
    tensor.role = role;
    tensor.shape = {rows};
    if (cols != 0) tensor.shape.push_back(cols);
    Append(std::move(tensor), &manifest_);
    return manifest_.tensors.back();
  }

  ParameterManifest manifest_;
};

void AddAttentionLayer(const ModelSpec& spec, uint32_t layer, ManifestBuilder* manifest) {
  const auto [in, out] = ShapeOf(spec, layer);
  const bool last = layer + 1 == spec.num_layers;
  const uint32_t columns = last ? out : out / spec.heads;
  const LayerShape wide{in, columns * spec.heads};
  const uint32_t fan = wide.in + wide.out;
  if (spec.type == ModelType::kGat) {
    manifest->Attention(layer, "att_src", TensorRole::kAttentionSource, spec.heads, columns);
    manifest->Attention(layer, "att_dst", TensorRole::kAttentionDestination, spec.heads, columns);
    manifest->Bias(layer, "bias", TensorRole::kBias, out);
    manifest->Weight(layer, "lin.weight", TensorRole::kWeight, wide, fan);
    return;
  }
  manifest->Attention(layer, "att", TensorRole::kAttentionSource, spec.heads, columns);
  manifest->Bias(layer, "bias", TensorRole::kBias, out);
  manifest->Weight(layer, "lin_l.weight", TensorRole::kWeight, wide, fan);
  manifest->Bias(layer, "lin_l.bias", TensorRole::kWeightBias, wide.out);
  manifest->Weight(layer, "lin_r.weight", TensorRole::kWeightSelf, wide, fan);
  manifest->Bias(layer, "lin_r.bias", TensorRole::kWeightSelfBias, wide.out);
}

void AddLayer(const ModelSpec& spec, uint32_t layer, ManifestBuilder* manifest) {
  const LayerShape shape = ShapeOf(spec, layer);
  // Weights of a row and of its neighbours are one matrix over their concatenation.
  const uint32_t fan_of_both = 2 * shape.in + shape.out;
  switch (spec.type) {
    case ModelType::kPinSage:
      manifest->Weight(layer, "lin.weight", TensorRole::kProjection, {shape.in, shape.in},
                       2 * shape.in);
      manifest->Bias(layer, "lin.bias", TensorRole::kProjectionBias, shape.in);
      [[fallthrough]];
    case ModelType::kGraphSage:
      manifest->Weight(layer, "lin_l.weight", TensorRole::kWeight, shape, fan_of_both);
      manifest->Bias(layer, "lin_l.bias", TensorRole::kBias, shape.out);
      manifest->Weight(layer, "lin_r.weight", TensorRole::kWeightSelf, shape, fan_of_both);
      break;
    case ModelType::kGcn:
      manifest->Bias(layer, "bias", TensorRole::kBias, shape.out);
      manifest->Weight(layer, "lin.weight", TensorRole::kWeight, shape, shape.in + shape.out);
      break;
    case ModelType::kGat:
    case ModelType::kGatV2:
      AddAttentionLayer(spec, layer, manifest);
      break;
    case ModelType::kScript:
    case ModelType::kSgc:
    case ModelType::kSign:
    case ModelType::kHoga:
      break;  // refused by CheckEnums; AddRowTensors'
  }
  if (HasResidualProjection(spec, layer)) {
    manifest->Weight(layer, "res.weight", TensorRole::kResidual, shape, shape.in + shape.out);
  }
}

}  // namespace

void Append(ParameterTensor tensor, ParameterManifest* manifest) {
  tensor.offset = manifest->num_floats;
  const uint64_t end = tensor.offset + tensor.size();
  manifest->num_floats = (end + kAlignmentFloats - 1) / kAlignmentFloats * kAlignmentFloats;
  manifest->tensors.push_back(std::move(tensor));
}

LayerShape ShapeOf(const ModelSpec& spec, uint32_t layer) {
  if (spec.type == ModelType::kScript) {
    return {layer == 0 ? spec.in_dim : spec.widths[layer - 1], spec.widths[layer]};
  }
  return {layer == 0 ? spec.in_dim : spec.hidden_dim,
          layer + 1 == spec.num_layers ? spec.out_dim : spec.hidden_dim};
}

bool HasResidualProjection(const ModelSpec& spec, uint32_t layer) {
  const LayerShape shape = ShapeOf(spec, layer);
  return spec.residual && (IsAttention(spec.type) || shape.in != shape.out);
}

Result<ParameterManifest> ManifestOf(const ModelSpec& spec) {
  if (Status status = CheckSpec(spec); !status.ok()) return status;
  if (TakesRows(spec.type)) {
    ParameterManifest rows;
    AddRowTensors(spec, &rows);
    return rows;
  }
  ManifestBuilder manifest;
  for (uint32_t layer = 0; layer < spec.num_layers; ++layer) {
    AddLayer(spec, layer, &manifest);
    if (spec.normalization != Normalization::kLayer || layer + 1 == spec.num_layers) continue;
    manifest.Norm(layer, "weight", TensorRole::kNormScale, spec.hidden_dim, 1.0F);
    manifest.Norm(layer, "bias", TensorRole::kNormShift, spec.hidden_dim, 0.0F);
  }
  return manifest.Take();
}

}  // namespace gnnd
