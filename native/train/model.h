#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "core/model/model_spec.h"
#include "core/sample/record.h"
#include "train/ops.h"
#include "train/workspace.h"

// GraphSAGE and GCN over blocks. Layer 0 is nearest the input features and consumes the record's
// last block; the last layer consumes block 0 and gives the seeds' logits.

namespace gnnd {

// Input features of a batch: either the rows of all input nodes, or, where those would only be
// aggregated once, what the bottom block makes of them.
struct BottomInput {
  at::Tensor x;           // [num_nodes, in_dim], input dropout applied; undefined when fused
  at::Tensor aggregated;  // [bottom num_dst, in_dim]; defined when fused
  at::Tensor self;        // GraphSAGE: the destinations' own rows, like `aggregated`
};

// Whether a layer multiplies by its weights before it aggregates. In sampled blocks, which have
// many more sources than destinations, that almost never pays; with full neighbourhoods it can.
bool TransformFirst(uint64_t num_dst, uint64_t num_src, uint64_t num_edges, uint64_t in,
                    uint64_t out);

// Dimensions of layer `layer`'s weights.
struct LayerShape {
  uint32_t in;
  uint32_t out;
};
LayerShape ShapeOf(const ModelSpec& spec, uint32_t layer);

// One layer's tensors, out of the manifest's order.
struct LayerParameters {
  at::Tensor weight;  // of neighbours (GraphSAGE) or of all (GCN)
  at::Tensor bias;
  at::Tensor weight_self;  // GraphSAGE only
};
LayerParameters ParametersOf(const ModelSpec& spec, std::span<const at::Tensor> parameters,
                             uint32_t layer);

// How the model's layers aggregate.
Reduction ReductionOf(const ModelSpec& spec);

// The seeds' logits, [num_seeds, out_dim]. `parameters` are the model's tensors in manifest order,
// all of one element type, that of `input`. Hidden dropout is keyed by the record's batch key
// (train/dropout.h). Tensors of the graph lie in `workspace` until its Reset.
at::Tensor ForwardBlocks(const ModelSpec& spec, std::span<const at::Tensor> parameters,
                         const RecordView& record, const BottomInput& input, Workspace* workspace);

}  // namespace gnnd
