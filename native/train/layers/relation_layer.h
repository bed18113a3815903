#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "core/batch/sample.h"
#include "core/model/relation_manifest.h"
#include "train/layers/layer.h"
#include "train/ops/workspace.h"

// One layer of a model over relations: its inputs, and the places of its tensors.

namespace gnnd {

// What rows of one type aggregate along one relation.
struct RelationInput {
  uint32_t relation = 0;  // index in ModelGraph
  BlockView block;        // num_src is the height of `x`
  at::Tensor x;           // [num_src, hidden_dim], rows of the source type, contiguous
};

// Rows of one type that are computed together.
struct RelationalContext {
  const Model& model;
  uint32_t layer = 0;  // not read by ProjectInput
  uint32_t type = 0;
  std::span<const at::Tensor> parameters;  // all of the model's, in manifest order
  BatchKey key{};                          // of dropout, as is `nodes`; not read unless it trains
  const uint32_t* nodes = nullptr;         // ids of the rows, within their type
  bool trains = false;
  Workspace* workspace = nullptr;
};

// One layer's call with the places of its tensors.
class RelationLayer {
 public:
  RelationLayer(const RelationalContext& context, const RelationTensors::Layer& tensors)
      : context_(context), tensors_(tensors) {}

  const ModelSpec& spec() const { return context_.model.spec; }
  const RelationalContext& context() const { return context_; }
  Workspace* workspace() const { return context_.workspace; }
  const RelationTensors::Layer& tensors() const { return tensors_; }
  const RelationTensors::OfType& OfType(uint32_t type) const { return tensors_.types[type]; }
  const RelationTensors::OfRelation& OfRelation(uint32_t relation) const {
    return tensors_.relations[relation];
  }
  // The tensor at an index of the manifest; undefined for kNoTensor.
  at::Tensor operator[](uint32_t index) const {
    return index == kNoTensor ? at::Tensor() : context_.parameters[index];
  }

 private:
  const RelationalContext& context_;
  const RelationTensors::Layer& tensors_;
};

// An HGT's layer, before normalisation and dropout.
at::Tensor AttendToRelations(const RelationLayer& layer, std::span<const RelationInput> relations,
                             const at::Tensor& own);

}  // namespace gnnd
