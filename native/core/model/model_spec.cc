#include "core/model/model_spec.h"

#include <utility>

namespace gnnd {
namespace {

constexpr uint32_t kMaxLayers = 8;         // a record holds at most so many hops
constexpr uint32_t kMaxDim = 1U << 18;     // dropout numbers 4-column groups of a row with 16 bits
constexpr uint64_t kAlignmentFloats = 16;  // tensors start on cache lines

Status CheckDimension(const char* name, uint32_t value) {
  if (value >= 1 && value <= kMaxDim) return Status::Ok();
  return Status(Code::kInvalidArgument, std::string(name) + " is " + std::to_string(value) +
                                            ", must be in 1.." + std::to_string(kMaxDim));
}

Status CheckDropout(const char* name, float value) {
  if (value >= 0.0F && value < 1.0F) return Status::Ok();  // false for NaN
  return Status(Code::kInvalidArgument, std::string(name) + " must be in [0, 1)");
}

Status CheckSpec(const ModelSpec& spec) {
  if (spec.type != ModelType::kGraphSage && spec.type != ModelType::kGcn) {
    return Status(Code::kInvalidArgument, "unknown model type");
  }
  if (spec.num_layers < 1 || spec.num_layers > kMaxLayers) {
    return Status(Code::kInvalidArgument,
                  "num_layers is " + std::to_string(spec.num_layers) + ", must be in 1..8");
  }
  GNND_TRY(CheckDimension("in_dim", spec.in_dim));
  GNND_TRY(CheckDimension("hidden_dim", spec.hidden_dim));
  GNND_TRY(CheckDimension("out_dim", spec.out_dim));
  GNND_TRY(CheckDropout("dropout", spec.dropout));
  return CheckDropout("input_dropout", spec.input_dropout);
}

}  // namespace

Result<ParameterManifest> ManifestOf(const ModelSpec& spec) {
  if (Status status = CheckSpec(spec); !status.ok()) return status;
  ParameterManifest manifest;
  const auto add = [&manifest](uint32_t layer, const char* suffix, uint32_t rows, uint32_t cols) {
    ParameterTensor tensor;
    tensor.name = "convs." + std::to_string(layer) + "." + suffix;
    tensor.rows = rows;
    tensor.cols = cols;
    tensor.layer = layer;
    tensor.is_bias = cols == 0;
    tensor.offset = manifest.num_floats;
    const uint64_t end = tensor.offset + tensor.size();
    manifest.num_floats = (end + kAlignmentFloats - 1) / kAlignmentFloats * kAlignmentFloats;
    manifest.tensors.push_back(std::move(tensor));
  };
  for (uint32_t layer = 0; layer < spec.num_layers; ++layer) {
    const uint32_t in = layer == 0 ? spec.in_dim : spec.hidden_dim;
    const uint32_t out = layer + 1 == spec.num_layers ? spec.out_dim : spec.hidden_dim;
    if (spec.type == ModelType::kGraphSage) {
      add(layer, "lin_l.weight", out, in);
      add(layer, "lin_l.bias", out, 0);
      add(layer, "lin_r.weight", out, in);
    } else {
      add(layer, "bias", out, 0);
      add(layer, "lin.weight", out, in);
    }
  }
  return manifest;
}

}  // namespace gnnd
