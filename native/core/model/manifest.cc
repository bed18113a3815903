#include "core/model/manifest.h"

#include <string>
#include <utility>

#include "core/model/relation_manifest.h"
#include "core/model/row_manifest.h"

namespace gnnd {
namespace {

constexpr uint32_t kMaxLayers = 8;      // a record holds at most so many hops
constexpr uint32_t kMaxDim = 1U << 18;  // dropout numbers 4-column groups of a row with 16 bits
constexpr uint32_t kMaxHeads = 64;
// Layers whose rows a head scores begin within 1 / sqrt(fan-in), as torch.nn.Linear does: Glorot's
// sqrt(6 / fan) with six times the fan-in (docs/decisions/0127-first-weights-of-links.md).
constexpr uint32_t kFansOfScoredRows = 6;

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
  const ModelKind* const kind = FindKind(spec.type);
  if (kind == nullptr) return Invalid("unknown model type");
  if (kind->input == ModelInput::kScript) {
    return Invalid("the tensors of a script stand in its file");
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
  const ModelKind& kind = KindOf(spec.type);
  if (kind.input != ModelInput::kBlocks) return Status::Ok();  // CheckSpec goes on to its checks
  if (!kind.attends()) {
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

Status CheckHead(const ModelSpec& spec) {
  GNND_TRY(CheckDimension("head_outputs", spec.head_outputs));
  if (spec.head_outputs == 1 || (spec.head && *spec.head == LinkHead::kMlp)) return Status::Ok();
  return Invalid("a perceptron alone has more outputs than one of a pair");
}

Status CheckSpec(const ModelSpec& spec) {
  GNND_TRY(CheckEnums(spec));
  if (spec.num_layers < 1 || spec.num_layers > kMaxLayers) {
    return Invalid("num_layers is " + std::to_string(spec.num_layers) + ", must be in 1..8");
  }
  if (!TakesRelations(spec.type)) GNND_TRY(CheckDimension("in_dim", spec.in_dim));
  GNND_TRY(CheckDimension("hidden_dim", spec.hidden_dim));
  GNND_TRY(CheckDimension("out_dim", spec.out_dim));
  GNND_TRY(CheckDropout("dropout", spec.dropout));
  GNND_TRY(CheckDropout("input_dropout", spec.input_dropout));
  const ModelKind& kind = KindOf(spec.type);
  if (kind.has_unit_rows && spec.normalization == Normalization::kLayer) {
    return Invalid(std::string("normalization of ") + kind.name + " is always L2");
  }
  GNND_TRY(CheckAttention(spec));
  GNND_TRY(CheckHead(spec));
  if (kind.input == ModelInput::kRows) return CheckRowSpec(spec);
  return kind.input == ModelInput::kRelations ? CheckRelationSpec(spec) : Status::Ok();
}

ParameterTensor TensorOf(uint32_t layer, const std::string& name, TensorRole role, uint32_t rows,
                         uint32_t cols) {
  ParameterTensor tensor;
  tensor.name = name;
  tensor.rows = rows;
  tensor.cols = cols;
  tensor.layer = layer;
  tensor.role = role;
  tensor.is_bias = cols == 0;
  tensor.shape = {rows};
  if (cols != 0) tensor.shape.push_back(cols);
  tensor.fan = cols == 0 ? 0 : rows + cols;
  return tensor;
}

void AddLayer(const ModelSpec& spec, uint32_t layer, ParameterManifest* manifest) {
  const std::string convolution = "convs." + std::to_string(layer) + ".";
  for (const TensorRule& rule : KindOf(spec.type).tensors) {
    const uint32_t cols = SizeOf(rule.cols, spec, layer);
    ParameterTensor tensor =
        TensorOf(layer, convolution + rule.name, rule.role, SizeOf(rule.rows, spec, layer), cols);
    if (rule.rows == LayerSize::kHeads) tensor.shape.insert(tensor.shape.begin(), 1);
    if (rule.is_half) tensor.fan += cols;
    Append(std::move(tensor), manifest);
  }
  if (HasResidualProjection(spec, layer)) {
    const LayerShape shape = ShapeOf(spec, layer);
    Append(TensorOf(layer, convolution + "res.weight", TensorRole::kResidual, shape.out, shape.in),
           manifest);
  }
  if (spec.normalization != Normalization::kLayer || layer + 1 == spec.num_layers) return;
  const std::string norm = "norms." + std::to_string(layer) + ".";
  ParameterTensor scale =
      TensorOf(layer, norm + "weight", TensorRole::kNormScale, spec.hidden_dim, 0);
  scale.fill = 1.0F;
  Append(std::move(scale), manifest);
  Append(TensorOf(layer, norm + "bias", TensorRole::kNormShift, spec.hidden_dim, 0), manifest);
}

// A matrix that is a part of one over several rows side by side has the fan of the whole.
void AddPart(const ModelSpec& spec, const char* name, TensorRole role, uint32_t rows, uint32_t fan,
             ParameterManifest* manifest) {
  ParameterTensor tensor =
      TensorOf(spec.num_layers, std::string("head.") + name, role, rows, spec.out_dim);
  tensor.fan = fan;
  Append(std::move(tensor), manifest);
}

void AddBias(const ModelSpec& spec, const char* name, TensorRole role, uint32_t rows,
             ParameterManifest* manifest) {
  Append(TensorOf(spec.num_layers, std::string("head.") + name, role, rows, 0), manifest);
}

// The tensors by which train/layers/link_head.h scores pairs of the last layer's rows.
void AddHead(const ModelSpec& spec, LinkHead head, ParameterManifest* manifest) {
  const uint32_t dim = spec.out_dim;
  switch (head) {
    case LinkHead::kDot:
    case LinkHead::kCosine:
      return;
    case LinkHead::kDistMult:
      return AddPart(spec, "rel_emb.weight", TensorRole::kPairProduct, 1, 1 + dim, manifest);
    case LinkHead::kBilinear:
      return AddPart(spec, "lin.weight", TensorRole::kPairSource, dim, 2 * dim, manifest);
    case LinkHead::kMlp:
      break;
  }
  AddPart(spec, "lin_product.weight", TensorRole::kPairProduct, dim, 4 * dim, manifest);
  AddBias(spec, "lin_product.bias", TensorRole::kPairBias, dim, manifest);
  AddPart(spec, "lin_source.weight", TensorRole::kPairSource, dim, 4 * dim, manifest);
  AddPart(spec, "lin_destination.weight", TensorRole::kPairDestination, dim, 4 * dim, manifest);
  const uint32_t outputs = spec.head_outputs;
  AddPart(spec, "lin_out.weight", TensorRole::kPairOut, outputs, outputs + dim, manifest);
  AddBias(spec, "lin_out.bias", TensorRole::kPairOutBias, outputs, manifest);
}

}  // namespace

Result<ParameterManifest> ManifestOf(const ModelSpec& spec) {
  if (Status status = CheckSpec(spec); !status.ok()) return status;
  ParameterManifest manifest;
  if (TakesRows(spec.type)) {
    AddRowTensors(spec, &manifest);
  } else if (TakesRelations(spec.type)) {
    AddRelationTensors(spec, &manifest);
  } else {
    for (uint32_t layer = 0; layer < spec.num_layers; ++layer) AddLayer(spec, layer, &manifest);
  }
  if (!spec.head) return manifest;
  for (ParameterTensor& tensor : manifest.tensors) tensor.fan = kFansOfScoredRows * tensor.cols;
  AddHead(spec, *spec.head, &manifest);
  return manifest;
}

std::vector<uint32_t> WidthsOf(const ModelSpec& spec) {
  std::vector<uint32_t> widths;
  for (uint32_t layer = 0; layer < spec.num_layers; ++layer) {
    widths.push_back(ShapeOf(spec, layer).out);
  }
  // SIGN's first layer joins the hops' projections.
  if (spec.variant == ModelVariant::kConcat) widths.front() *= spec.num_hops + 1;
  return widths;
}

}  // namespace gnnd
