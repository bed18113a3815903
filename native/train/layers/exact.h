#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

#include "core/model/model_spec.h"
#include "train/ops/affine.h"
#include "train/ops/workspace.h"

// What a layer's exact form computes with (train/evaluate/eval_layer.h has it).

namespace gnnd {

// One layer's tensors by their part; undefined where the model has none.
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
// without gradients. What it hands out is valid until the block is done.
class ExactRows {
 public:
  virtual ~ExactRows() = default;

  virtual const ModelSpec& spec() const = 0;
  virtual uint32_t layer() const = 0;
  virtual const LayerParameters& parameters() const = 0;
  // Whether the layer's transformed rows are there.
  virtual bool transforms_first() const = 0;
  virtual Workspace* memory() = 0;

  const at::Tensor& operator[](TensorRole role) const { return parameters()[role]; }
  bool last() const { return layer() + 1 == spec().num_layers; }

  // Uninitialised rows of the block.
  virtual at::Tensor Empty(uint64_t columns) = 0;
  // Input rows of the block's own nodes.
  virtual at::Tensor Input() = 0;
  // What the block's nodes gather of input rows; the bottom layer's may be those of an evaluation
  // before.
  virtual at::Tensor Gathered() = 0;
  // What they gather of transformed rows, by edge weights.
  virtual void GatherTransformed(const at::Tensor& out) = 0;
  // What they gather of transformed rows by attention: `destination` are the block's own parts of
  // scores, where those are no numbers (PutScores). With queries a transformed row is a key with
  // the value behind it.
  virtual void Attend(const at::Tensor& destination, const at::Tensor& out) = 0;
  // Of a transformation: each row's scores by head, [heads, rows], as sources or as destinations.
  enum class Side : uint32_t { kSource, kDestination };
  virtual void PutScores(Side side, const at::Tensor& scores) = 0;

  void Affine(const AffineOp& op);
};

}  // namespace gnnd
