#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <utility>

#include "core/batch/sample.h"
#include "core/model/model_spec.h"
#include "train/layers/history.h"
#include "train/ops/ops.h"
#include "train/ops/workspace.h"

// The models over blocks. Layer 0 is nearest the input features and consumes the sample's last
// block; the last layer consumes block 0 and gives the seeds' logits.

namespace gnnd {

// Input features of a batch: either the rows of all input nodes, or, where those would only be
// aggregated once, what the bottom block makes of them.
struct BottomInput {
  at::Tensor x;           // [num_nodes, in_dim], input dropout applied; undefined when fused
  at::Tensor aggregated;  // [bottom num_dst, in_dim]; defined when fused
  at::Tensor self;        // GraphSAGE: the destinations' own rows, like `aggregated`
};

// Whether the bottom layer begins by aggregating raw features, so that BottomInput may be fused.
bool AggregatesFeatures(const ModelSpec& spec);

// Whether a layer multiplies by its weights before it aggregates. In sampled blocks, which have
// many more sources than destinations, that almost never pays; with full neighbourhoods it can.
bool TransformFirst(uint64_t num_dst, uint64_t num_src, uint64_t num_edges, uint64_t in,
                    uint64_t out);

// One layer's tensors by their part (TensorRole); undefined where the model has none.
struct LayerParameters {
  at::Tensor weight;
  at::Tensor bias;
  at::Tensor weight_self;
  at::Tensor weight_bias;
  at::Tensor weight_self_bias;
  at::Tensor projection;
  at::Tensor projection_bias;
  at::Tensor attention_source;
  at::Tensor attention_destination;
  at::Tensor residual;
  at::Tensor norm_scale;
  at::Tensor norm_shift;
};

// A model's description with the places of its tensors.
struct Model {
  explicit Model(const ModelSpec& of, bool with_shares = false);  // that ManifestOf accepts
  Model(ModelSpec of, ParameterManifest tensors)
      : spec(std::move(of)), manifest(std::move(tensors)) {}

  ModelSpec spec;
  ParameterManifest manifest;
  bool shares = false;  // as TrainOptions
};

// `parameters` in manifest order.
LayerParameters ParametersOf(const Model& model, std::span<const at::Tensor> parameters,
                             uint32_t layer);

// How the model's layers aggregate, attention apart: `shares` as of TrainOptions.
Reduction ReductionOf(const ModelSpec& spec, bool shares = false);

// The seeds' logits, [num_seeds, out_dim]. `parameters` are the model's tensors in manifest order,
// all of the element type of `input`, or float32, as the logits then are, where that is bfloat16:
// then hidden rows are bfloat16, too, and attention, norms and activations other than ReLU compute
// in float32 between them. Dropout is keyed by the sample's batch key
// (core/kernels/dropout.h, attention.h). Tensors of the graph lie in `workspace` until its Reset.
//
// With a history the sample is what TrainerHistory::Prune made, and kept levels are merged.
at::Tensor ForwardBlocks(const Model& model, std::span<const at::Tensor> parameters,
                         const Sample& sample, const BottomInput& input, Workspace* workspace,
                         TrainerHistory* history = nullptr);

}  // namespace gnnd
