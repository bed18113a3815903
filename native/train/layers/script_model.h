#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/batch/sample.h"
#include "core/model/model_spec.h"
#include "train/layers/model.h"
#include "train/layers/script_options.h"

// A user's model: a TorchScript module (docs/plugins.md is its contract). It has an attribute
// `num_layers` and a method
//
//   layer(self, index: int, x: Tensor, indptr: Tensor, src: Tensor, weight: Optional[Tensor])
//       -> Tensor
//
// which makes one row from each destination of a block: x is [sources, columns], float32, the
// destinations' own rows first; indptr int64 [destinations + 1], src int64 [edges], rows of x;
// weight float32 [edges] or None. Layer 0 gets the features, the last gives [destinations,
// classes]. Training on blocks and evaluation call the same method.

namespace gnnd {

// The user's model threw or returned something invalid; the message is one line.
class ScriptError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The edges of a block as a script sees them. A null weight becomes None.
struct ScriptBlock {
  std::span<const uint32_t> indptr;  // [rows + 1]
  std::span<const uint32_t> src;     // [indptr.back() - indptr.front()]
  const float* weight = nullptr;
};

// Not thread-safe. The interpreter runs the program as written, without optimisation, because an
// optimised run's result would depend on the number of earlier runs. Torch is told to refuse
// non-deterministic operations, for the whole process.
class ScriptModel {
 public:
  // Loads the file and checks the contract on a tiny block of each layer. kPluginFailed names the
  // file and the problem.
  static Result<std::unique_ptr<ScriptModel>> Load(const ScriptOptions& options);
  virtual ~ScriptModel() = default;

  // A kScript spec with the widths that the trial found.
  const ModelSpec& spec() const { return spec_; }
  // The module's parameters by their names in its state dict.
  const ParameterManifest& manifest() const { return manifest_; }
  // Initial values from the file, [manifest().num_floats], padding zero.
  std::span<const float> initial_parameters() const { return initial_; }

  // Copies a parameter vector into the module.
  void SetParameters(std::span<const float> parameters);
  // The module's own tensors in manifest order: leaves that require gradients.
  std::span<const at::Tensor> parameters() const { return parameters_; }

  // Prepares for training, with torch's generator seeded by the batch's key, or for evaluation.
  virtual void BeginBatch(const BatchKey& key) = 0;
  virtual void BeginEvaluation() = 0;

  // Throws ScriptError when the script throws, or its result is not [rows, spec().widths[layer]].
  virtual at::Tensor Layer(uint32_t layer, const at::Tensor& x, const ScriptBlock& block) = 0;

  // The seeds' logits, [num_seeds, out_dim], from the input nodes' features; `tap` is told what
  // each layer gave. Throws as Layer.
  at::Tensor Forward(const Sample& sample, const at::Tensor& x, const LayerTap& tap = {});

 protected:
  ModelSpec spec_;
  ParameterManifest manifest_;
  std::vector<float> initial_;
  std::vector<at::Tensor> parameters_;
};

}  // namespace gnnd
