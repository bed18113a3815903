#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

#include "core/model/model_spec.h"
#include "train/ops/affine.h"
#include "train/ops/workspace.h"

// The inputs of a layer's exact form, which train/evaluate/eval_layer.h implements.

namespace gnnd {

// One layer's tensors by role; undefined if the model lacks one.
class LayerParameters {
 public:
  const at::Tensor& operator[](TensorRole role) const {
    return tensors_[static_cast<uint32_t>(role)];
  }
  at::Tensor& operator[](TensorRole role) { return tensors_[static_cast<uint32_t>(role)]; }

 private:
  std::array<at::Tensor, kTensorRoles> tensors_;
};

// Rows of a block of nodes, which a layer computes with their whole neighbourhoods, in float32 and
// without gradients. Returned tensors are valid until the block is done.
class ExactRows {
 public:
  virtual ~ExactRows() = default;

  virtual const ModelSpec& spec() const = 0;
  virtual uint32_t layer() const = 0;
  virtual const LayerParameters& parameters() const = 0;
  // Whether the layer's transformed rows exist.
  virtual bool transforms_first() const = 0;
  virtual Workspace* memory() = 0;

  const at::Tensor& operator[](TensorRole role) const { return parameters()[role]; }
  bool last() const { return layer() + 1 == spec().num_layers; }

  // Uninitialised rows for the block.
  virtual at::Tensor Empty(uint64_t columns) = 0;
  // The input rows of the block's own nodes.
  virtual at::Tensor Input() = 0;
  // The sums of input rows that the block's nodes gather; at the bottom layer they may come from an
  // earlier evaluation.
  virtual at::Tensor Gathered() = 0;
  // Writes the sums of transformed rows that they gather, by edge weights.
  virtual void GatherTransformed(const at::Tensor& out) = 0;
  // Writes the attention-weighted sums of transformed rows that they gather. `destination` holds
  // the block's own parts of scores if these are rows, not numbers (PutScores). With queries, a
  // transformed row is a key followed by the value.
  virtual void Attend(const at::Tensor& destination, const at::Tensor& out) = 0;
  // Stores the scores of transformed rows by head, [heads, rows], as sources or as destinations.
  enum class Side : uint32_t { kSource, kDestination };
  virtual void PutScores(Side side, const at::Tensor& scores) = 0;

  void Affine(const AffineOp& op);
};

}  // namespace gnnd
