#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "core/batch/sample.h"
#include "core/model/model_spec.h"
#include "train/layers/exact.h"
#include "train/ops/ops.h"
#include "train/ops/workspace.h"

// One layer of a model over blocks: the interface that each kind of model implements in its file.

namespace gnnd {

// Input features of a batch: the rows of all input nodes or, if those would only be gathered once,
// the bottom block's sums of them.
struct BottomInput {
  at::Tensor x;           // [num_nodes, in_dim], input dropout applied; undefined when fused
  at::Tensor aggregated;  // [bottom num_dst, in_dim]; defined when fused
  at::Tensor self;  // the destinations' own rows, like `aggregated`, for layers that read them
};

// Whether the bottom layer begins by gathering raw features, so that BottomInput may be fused.
bool AggregatesFeatures(const ModelSpec& spec);

// Whether a layer multiplies by its weights before it aggregates. In sampled blocks, which have
// many more sources than destinations, that almost never pays; with full neighbourhoods it can.
bool TransformFirst(uint64_t num_dst, uint64_t num_src, uint64_t num_edges, uint64_t in,
                    uint64_t out);

// How the model's layers without attention aggregate; `shares` as in TrainOptions.
Reduction ReductionOf(const ModelSpec& spec, bool shares = false);

// A model's description with the places of its tensors.
struct Model {
  explicit Model(const ModelSpec& of, bool with_shares = false);  // REQUIRES: ManifestOf accepts it
  Model(ModelSpec of, ParameterManifest tensors)
      : spec(std::move(of)), manifest(std::move(tensors)) {}

  ModelSpec spec;
  ParameterManifest manifest;
  bool shares = false;  // as in TrainOptions
};

// The tensors of one layer of `model`; `parameters` are all of the model's, in manifest order.
LayerParameters ParametersOf(const Model& model, std::span<const at::Tensor> parameters,
                             uint32_t layer);

// The inputs of one layer for one batch.
struct LayerContext {
  const Model& model;
  uint32_t layer;
  LayerParameters parameters;
  BlockView block;
  BatchKey key;
  const uint32_t* nodes;  // global ids of the block's rows
  Workspace* workspace;

  const at::Tensor& operator[](TensorRole role) const { return parameters[role]; }
  // Logits are float32, whatever the type of the rows they are computed from.
  bool last() const { return layer + 1 == model.spec.num_layers; }
  at::Tensor OwnRows(const at::Tensor& x) const { return x.narrow(0, 0, block.num_dst); }
};

// Converts rows in bfloat16 to float32; returns others as they are.
at::Tensor Widened(const at::Tensor& rows, Workspace* workspace);

// Stateless; normalisation, activation and residuals after a layer are not its business.
class Layer {
 public:
  virtual ~Layer() = default;

  // Computes the block's destinations, [num_dst, out], from rows of its sources.
  virtual at::Tensor Forward(const LayerContext& context, const at::Tensor& x) const = 0;
  // Forward at the bottom layer, from gathered features; only if AggregatesFeatures.
  virtual at::Tensor ForwardFused(const LayerContext& context, const BottomInput& input) const;

  // Exact evaluation: transforms each input row before any is gathered.
  virtual void TransformExactly(ExactRows* rows, const at::Tensor& out) const = 0;
  // Exact evaluation: the layer's output for the rows of a block.
  virtual void RunExactly(ExactRows* rows, const at::Tensor& out) const = 0;
};

}  // namespace gnnd
