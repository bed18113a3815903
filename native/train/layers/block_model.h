#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/graph/row_table.h"
#include "train/layers/layer.h"
#include "train/layers/model.h"
#include "train/layers/script_model.h"

namespace gnnd {

// A model over blocks as a Trainer computes it: one of ours, or a user's script. Used by one
// thread.
class BlockModel {
 public:
  explicit BlockModel(Model model) : model_(std::move(model)) {}
  virtual ~BlockModel() = default;

  const Model& model() const { return model_; }
  const ParameterManifest& manifest() const { return model_.manifest; }

  // Writes version 0 of the parameters.
  virtual void Init(std::span<float> parameters) const = 0;

  // Returns the tensors for which a batch's gradient is computed, from `floats` on `where`.
  virtual std::vector<at::Tensor> Leaves(const BatchKey& key, std::span<const float> floats,
                                         at::Device where) = 0;
  // Computes the seeds' logits in training; `history` may be null.
  virtual at::Tensor Forward(std::span<const at::Tensor> leaves, const Sample& sample,
                             const BottomInput& input, Workspace* workspace,
                             TrainerHistory* history) = 0;

  // Returns the parameters of an evaluation, which need no gradient, from `floats` on `where`.
  virtual std::vector<at::Tensor> Constants(std::span<const float> floats, at::Device where) = 0;
  // Computes the layers in evaluation, without dropout.
  virtual void Evaluate(std::span<const at::Tensor> constants, const Sample& sample,
                        const BottomInput& input, Workspace* workspace, const LayerTap& tap) = 0;

  // The number of a Trainer's threads that torch's own operators take.
  virtual uint32_t torch_threads(uint32_t threads) const = 0;
  // The code of exceptions that computing the model throws.
  virtual Code thrown() const = 0;

 private:
  Model model_;
};

// Makes one of our models. Its parameters follow from the random seed, and for kinds of models that
// are scaled by the features also from those.
std::unique_ptr<BlockModel> OwnModel(Model model, const RowTable& features, uint64_t random_seed);
std::unique_ptr<BlockModel> ScriptedModel(std::unique_ptr<ScriptModel> script);

}  // namespace gnnd
