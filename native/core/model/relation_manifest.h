#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/model/model_spec.h"

// The models over several types and relations: what they compute of which type, and their tensors.
// Rows stand at levels: level 0 has the projected input rows, level l what layer l - 1 gives of
// them. R-SAGE and R-GCN give logits at level num_layers; an HGT has a linear map behind it. What
// cannot reach the last level's rows of type 0 is not computed, and has no tensors.

namespace gnnd {

// Which rows and relations of each level matter to the model's result.
class RelationNeeds {
 public:
  // REQUIRES: CheckRelationSpec accepts it.
  explicit RelationNeeds(const ModelSpec& spec);

  // Whether rows of the type are needed at level `level`, 0 to num_layers.
  bool Rows(uint32_t level, uint32_t type) const { return rows_[level][type]; }
  // Whether layer `layer` aggregates along the relation.
  bool Takes(uint32_t layer, uint32_t relation) const {
    return rows_[layer + 1][relations_[relation].destination];
  }

 private:
  std::vector<std::vector<bool>> rows_;
  std::vector<ModelGraph::Relation> relations_;
};

// Indices of tensors in the manifest.
inline constexpr uint32_t kNoTensor = 0xFFFFFFFF;

struct RelationTensors {
  // A matrix and what is added to its product.
  struct Linear {
    uint32_t weight = kNoTensor;
    uint32_t bias = kNoTensor;
  };
  struct OfType {
    Linear root;  // R-SAGE, R-GCN (there all types of a layer share it): applied to a row itself
    Linear key;   // HGT, as the next ones: of types that are sources of relations
    Linear value;
    Linear query;  // of types with relations into them, as the next ones
    Linear out;    // applied to what attention gathered
    uint32_t skip = kNoTensor;
    uint32_t norm_scale = kNoTensor;
    uint32_t norm_shift = kNoTensor;
  };
  struct OfRelation {
    uint32_t weight = kNoTensor;  // R-SAGE, and R-GCN without bases
    uint32_t row = 0;             // R-GCN with bases: the relation's row of `shares`
    uint32_t key = kNoTensor;     // HGT: [heads, d, d], applied to keys, and to values
    uint32_t value = kNoTensor;
    uint32_t prior = kNoTensor;  // HGT: [heads]
  };
  struct Layer {
    std::vector<OfType> types;
    std::vector<OfRelation> relations;
    uint32_t bases = kNoTensor;   // R-GCN with bases: [bases, out, in]
    uint32_t shares = kNoTensor;  // and [relations that the layer takes, bases]
  };

  std::vector<Linear> inputs;  // by type
  std::vector<Layer> layers;
  Linear outputs;  // HGT: behind the last layer

  // REQUIRES: CheckRelationSpec accepts it.
  static RelationTensors Of(const ModelSpec& spec);
};

// kInvalidArgument, naming the field, for a model over relations that cannot be.
Status CheckRelationSpec(const ModelSpec& spec);

// The tensors, in the order of RelationTensors::Of.
void AddRelationTensors(const ModelSpec& spec, ParameterManifest* manifest);

// "author__writes__paper": a relation's name in those of its tensors.
std::string NameOf(const ModelGraph& graph, const ModelGraph::Relation& relation);

}  // namespace gnnd
