#pragma once

#include "core/model/relation_manifest.h"
#include "train/layers/relational.h"

// What the layers of models over relations share.

namespace gnnd {

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
