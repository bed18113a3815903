#include "core/model/row_manifest.h"

#include <algorithm>
#include <string>
#include <utility>

namespace gnnd {
namespace {

constexpr uint32_t kMaxColumns = 1U << 18;  // dropout numbers groups of 4 columns with 16 bits
constexpr float kPReluStart = 0.25F;        // initial value of torch.nn.PReLU

Status Invalid(const std::string& what) { return Status(Code::kInvalidArgument, what); }

// Appends tensors under the names of torch.nn's modules.
class Builder {
 public:
  explicit Builder(ParameterManifest* manifest) : manifest_(manifest) {}

  // torch.nn.Linear; `rectified`: a ReLU follows.
  void Linear(const std::string& name, uint32_t in, uint32_t out, bool bias, uint32_t layer,
              bool rectified = false) {
    ParameterTensor weight = Named(name + ".weight", layer);
    weight.rows = out;
    weight.cols = in;
    weight.shape = {out, in};
    weight.role = TensorRole::kWeight;
    // A ReLU's gain of sqrt(2) equals half the fan.
    weight.fan = rectified ? std::max(1U, (in + out) / 2) : in + out;
    Append(std::move(weight), manifest_);
    if (bias) Vector(name + ".bias", out, 0.0F, TensorRole::kBias, layer);
  }

  void Vector(const std::string& name, uint32_t size, float fill, TensorRole role, uint32_t layer) {
    ParameterTensor tensor = Named(name, layer);
    tensor.rows = size;
    tensor.shape = {size};
    tensor.is_bias = true;
    tensor.fill = fill;
    tensor.role = role;
    Append(std::move(tensor), manifest_);
  }

  // torch.nn.LayerNorm.
  void Norm(const std::string& name, uint32_t size, uint32_t layer) {
    Vector(name + ".weight", size, 1.0F, TensorRole::kNormScale, layer);
    Vector(name + ".bias", size, 0.0F, TensorRole::kNormShift, layer);
  }

  // torch.nn.BatchNorm1d.
  void BatchNorm(const std::string& name, uint32_t size, uint32_t layer) {
    Norm(name, size, layer);
    Vector(name + ".running_mean", size, 0.0F, TensorRole::kRunning, layer);
    Vector(name + ".running_var", size, 1.0F, TensorRole::kRunning, layer);
  }

  // torch.nn.MultiheadAttention.
  void Attention(const std::string& name, uint32_t width, uint32_t layer) {
    ParameterTensor weight = Named(name + ".in_proj_weight", layer);
    weight.rows = 3 * width;
    weight.cols = width;
    weight.shape = {3 * width, width};
    weight.fan = 2 * width;  // three matrices of [width, width], each by itself
    Append(std::move(weight), manifest_);
    Vector(name + ".in_proj_bias", 3 * width, 0.0F, TensorRole::kBias, layer);
    Linear(name + ".out_proj", width, width, true, layer);
  }

  void PRelu(const std::string& name, uint32_t layer) {
    Vector(name + ".weight", 1, kPReluStart, TensorRole::kNormScale, layer);
  }

 private:
  static ParameterTensor Named(const std::string& name, uint32_t layer) {
    ParameterTensor tensor;
    tensor.name = name;
    tensor.layer = layer;
    return tensor;
  }

  ParameterManifest* manifest_;
};

std::string At(const char* list, uint32_t index) { return list + std::to_string(index); }

void AddSign(const ModelSpec& spec, Builder* add) {
  const bool concat = spec.variant == ModelVariant::kConcat;
  uint32_t in = TokensOf(spec) * spec.in_dim;
  if (concat) {
    for (uint32_t hop = 0; hop <= spec.num_hops; ++hop) {
      const uint32_t sources = hop == 0 ? 1 : spec.num_operators;
      add->Linear(At("hops.", hop), sources * spec.in_dim, spec.hidden_dim, false, 0);
    }
    add->PRelu("act", 0);
    in = (spec.num_hops + 1) * spec.hidden_dim;
  }
  const uint32_t layers = spec.num_layers - (concat ? 1 : 0);
  for (uint32_t layer = 0; layer < layers; ++layer) {
    const bool last = layer + 1 == layers;
    const uint32_t number = layer + (concat ? 1 : 0);
    add->Linear(At("lins.", layer), in, last ? spec.out_dim : spec.hidden_dim, true, number);
    if (!last) add->BatchNorm(At("norms.", layer), spec.hidden_dim, number);
    in = spec.hidden_dim;
  }
}

void AddHopPerceptron(const ModelSpec& spec, uint32_t token, Builder* add) {
  const std::string name = At("hops.", token);
  if (spec.hop_layers == 0) {
    return add->Linear(name, spec.in_dim, spec.hidden_dim, false, 0);
  }
  uint32_t in = spec.in_dim;
  for (uint32_t layer = 0; layer < spec.hop_layers; ++layer) {
    const bool last = layer + 1 == spec.hop_layers;
    const uint32_t out = last ? spec.hidden_dim : spec.hop_hidden_dim;
    add->Linear(name + At(".lins.", layer), in, out, true, 0, /*rectified=*/true);
    if (!last) add->PRelu(name + At(".acts.", layer), 0);
    in = out;
  }
}

void AddHoga(const ModelSpec& spec, Builder* add) {
  const uint32_t width = spec.hidden_dim;
  const bool gated = spec.variant == ModelVariant::kGated;
  if (gated) {
    for (uint32_t token = 0; token < TokensOf(spec); ++token) AddHopPerceptron(spec, token, add);
  } else {
    add->Linear("lin", spec.in_dim, width, true, 0);
  }
  for (uint32_t layer = 0; layer < spec.num_layers; ++layer) {
    const std::string name = At("layers.", layer);
    add->Linear(name + ".gate", width, width, false, 1 + layer);
    add->Attention(name + ".attn", width, 1 + layer);
    add->Norm(name + ".norm", width, 1 + layer);
  }
  const uint32_t end = 1 + spec.num_layers;
  if (!gated) {
    add->Linear("alpha", 2 * width, 1, false, end);
    add->Linear("lin1", width, width, true, end);
    add->BatchNorm("bn", width, end);
    return add->Linear("lin2", width, spec.out_dim, true, end);
  }
  add->Linear("last_gate", width, width, false, end);
  add->Attention("last", width, end);
  if (spec.residual) {
    add->Linear("res", spec.in_dim, width, false, end);
    add->PRelu("res_act", end);
  }
  add->Norm("norm", width, end);
  add->Linear("out", width, spec.out_dim, false, end);
}

}  // namespace

Status CheckRowSpec(const ModelSpec& spec) {
  if (spec.num_operators < 1 || spec.num_operators > 16) return Invalid("num_operators");
  if (spec.num_hops < 1 || spec.num_hops > 64) return Invalid("num_hops");
  const uint64_t widest =
      uint64_t{TokensOf(spec)} * std::max({spec.in_dim, spec.hidden_dim, spec.hop_hidden_dim});
  if (widest > kMaxColumns) {
    return Invalid("a row of " + std::to_string(TokensOf(spec)) + " hops has " +
                   std::to_string(widest) + " columns, and " + std::to_string(kMaxColumns) +
                   " is the most");
  }
  const bool sign = spec.type == ModelType::kSign;
  const bool fits_sign =
      spec.variant == ModelVariant::kFused || spec.variant == ModelVariant::kConcat;
  const bool fits_hoga =
      spec.variant == ModelVariant::kGated || spec.variant == ModelVariant::kDac24;
  if (spec.type != ModelType::kSgc && !(sign ? fits_sign : fits_hoga)) return Invalid("variant");
  if (spec.variant == ModelVariant::kConcat && spec.num_layers < 2) {
    return Invalid("num_layers of CONCAT must be at least 2");
  }
  if (spec.type != ModelType::kHoga) {
    if (spec.heads != 1) return Invalid("heads must be 1 in a model without attention");
    if (spec.attention_dropout != 0.0F) {
      return Invalid("attention_dropout must be 0 in a model without attention");
    }
  } else {
    if (spec.heads < 1 || spec.hidden_dim % spec.heads != 0) {
      return Invalid("hidden_dim must be a multiple of heads");
    }
    if (spec.hop_layers > kMaxHopLayers) {
      return Invalid("hop_layers must be at most " + std::to_string(kMaxHopLayers));
    }
  }
  return Status::Ok();
}

void AddRowTensors(const ModelSpec& spec, ParameterManifest* manifest) {
  Builder add(manifest);
  if (spec.type == ModelType::kSgc) return add.Linear("lin", spec.in_dim, spec.out_dim, true, 0);
  if (spec.type == ModelType::kSign) return AddSign(spec, &add);
  AddHoga(spec, &add);
}

uint32_t TokensRead(const ModelSpec& spec) {
  return spec.type == ModelType::kSgc ? 1 : TokensOf(spec);
}

}  // namespace gnnd
