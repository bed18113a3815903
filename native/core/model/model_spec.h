#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"

// What a model is, as data, and where each of its parameters lies in the flat parameter vector that
// the job segment holds. Knows no torch: the daemon sizes segments and names tensors with it.

namespace gnnd {

enum class ModelType : uint32_t { kGraphSage = 1, kGcn = 2 };

struct ModelSpec {
  ModelType type = ModelType::kGraphSage;
  uint32_t num_layers = 2;
  uint32_t in_dim = 0;  // feature columns
  uint32_t hidden_dim = 256;
  uint32_t out_dim = 0;        // classes
  float dropout = 0.0F;        // on hidden layers' outputs
  float input_dropout = 0.0F;  // on input features
};

// One tensor of the model. Names and shapes are those of torch_geometric's models of the same kind,
// so that a checkpoint loads with load_state_dict: weights are [out, in].
struct ParameterTensor {
  std::string name;
  uint32_t rows = 0;   // out; 1-d tensors have cols = 0
  uint32_t cols = 0;   // in
  uint32_t layer = 0;  // 0 is the layer nearest the input features
  bool is_bias = false;
  uint64_t offset = 0;  // in floats from the start of the parameter vector; a multiple of 16

  uint64_t size() const { return static_cast<uint64_t>(rows) * (cols == 0 ? 1 : cols); }
};

struct ParameterManifest {
  std::vector<ParameterTensor> tensors;
  uint64_t num_floats = 0;  // padded total; padding is always zero
};

// GraphSAGE (mean): convs.{l}.lin_l.weight (neighbours), .lin_l.bias, .lin_r.weight (self).
// GCN: convs.{l}.bias, convs.{l}.lin.weight.
// kInvalidArgument when a dimension is 0 or num_layers is not in 1..8.
Result<ParameterManifest> ManifestOf(const ModelSpec& spec);

}  // namespace gnnd
