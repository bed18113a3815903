#include "train/layers/relational.h"

#include <ATen/ops/add.h>

#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/draw/type_seed.h"
#include "train/layers/relation_layer.h"
#include "train/ops/after_layer.h"
#include "train/ops/ops.h"
#include "train/ops/relation_ops.h"

namespace gnnd {
namespace {

// A relation's matrix: its own, or the sum of bases by its shares of them.
at::Tensor WeightOf(const RelationLayer& layer, uint32_t relation) {
  const RelationTensors::OfRelation& mine = layer.OfRelation(relation);
  if (layer.tensors().bases == kNoTensor) return layer[mine.weight];
  const int64_t bases = layer.spec().bases;
  const at::Tensor matrices = layer[layer.tensors().bases];
  const at::Tensor shares = layer[layer.tensors().shares].narrow(0, mine.row, 1);
  return ComposeWeights(shares, matrices.view({bases, -1}), {}, 1, layer.workspace())
      .view({-1, matrices.size(1)});
}

// R-SAGE (a GraphSAGE layer of each relation, summed, with one matrix for the row itself) and R-GCN
// (Schlichtkrull et al., ESWC 2018): a row times a matrix, plus the mean along each relation times
// that relation's matrix. `rows` as in ComputeLayer.
at::Tensor Convolve(const RelationLayer& layer, std::span<const RelationInput> relations,
                    const at::Tensor& own, std::vector<at::Tensor>* rows) {
  const RelationTensors::Linear& root = layer.OfType(layer.context().type).root;
  AffineInput first{own, layer[root.weight], {}, {}, layer[root.bias]};
  at::Tensor sum;
  for (const RelationInput& relation : relations) {
    at::Tensor x = relation.x;
    at::Tensor& source =
        rows == nullptr ? x : (*rows)[layer.spec().graph.relations[relation.relation].source];
    const auto [mean, rest] = MeanAndRows(source, relation.block, layer.workspace());
    source = rest;
    const at::Tensor weight = WeightOf(layer, relation.relation);
    if (sum.defined()) {
      sum = Affine({mean, weight, {}, {}, {}, sum}, layer.workspace());
    } else {
      first.x_self = mean;
      first.weight_self = weight;
      sum = Affine(first, layer.workspace());
    }
  }
  return sum.defined() ? sum : Affine(first, layer.workspace());
}

DropoutSite SiteOf(const RelationalContext& context, uint32_t level) {
  const BatchKey& key = context.key;
  return {{SeedOfType(key.random_seed, context.type), key.epoch, key.batch, level},
          context.nodes,
          context.trains ? context.model.spec.dropout : 0.0F};
}

// What comes after a hidden layer. An HGT has its activation within.
at::Tensor Finished(const RelationLayer& layer, const at::Tensor& z) {
  const ModelSpec& spec = layer.spec();
  const RelationTensors::OfType& mine = layer.OfType(layer.context().type);
  const DropoutSite site = SiteOf(layer.context(), layer.context().layer + 1);
  Workspace* workspace = layer.workspace();
  if (spec.type != ModelType::kHgt) {
    return FinishLayer(spec, z, layer[mine.norm_scale], layer[mine.norm_shift], site, workspace);
  }
  switch (spec.normalization) {
    case Normalization::kLayer:
      return DropRows(LayerNorm(z, layer[mine.norm_scale], layer[mine.norm_shift], workspace), site,
                      workspace);
    case Normalization::kL2:
      return DropRows(Normalize(z, workspace), site, workspace);
    case Normalization::kNone:
      break;
  }
  return DropRows(z, site, workspace);
}

// ForwardRelations. `rows`, null where nothing is learnt, has the rows of types that relations
// read, by type: each reader leaves there what the next one is to read (MeanAndRows).
at::Tensor ComputeLayer(const RelationalContext& context, std::span<const RelationInput> relations,
                        const at::Tensor& own, std::vector<at::Tensor>* rows) {
  const ModelSpec& spec = context.model.spec;
  const RelationTensors tensors = RelationTensors::Of(spec);
  const RelationLayer layer(context, tensors.layers[context.layer]);
  const bool is_last = context.layer + 1 == spec.num_layers;
  if (spec.type == ModelType::kHgt) {
    const at::Tensor hidden = Finished(layer, AttendToRelations(layer, relations, own));
    if (!is_last) return hidden;
    return Affine({hidden, layer[tensors.outputs.weight], {}, {}, layer[tensors.outputs.bias]},
                  context.workspace);
  }
  const at::Tensor z = Convolve(layer, relations, own, rows);
  if (is_last) return z;
  return Finished(layer, spec.residual ? z.add(own) : z);
}

// Rows of a type that the sample has before hop `hop`, which are that hop's destinations.
uint32_t RowsBefore(const Sample& sample, uint32_t hop, uint32_t type) {
  uint32_t rows = sample.num_seeds(type);
  for (uint32_t b = 0; b < sample.num_blocks(); ++b) {
    const BlockView& block = sample.block(b);
    if (block.hop < hop && block.src_type == type) rows = std::max(rows, block.num_src);
  }
  return rows;
}

// The sample's rows through the layers, level by level.
class TypedPass {
 public:
  TypedPass(const Model& model, std::span<const at::Tensor> parameters, const Sample& sample,
            bool trains, Workspace* workspace)
      : model_(model),
        parameters_(parameters),
        sample_(sample),
        trains_(trains),
        workspace_(workspace),
        needs_(model.spec),
        rows_(model.spec.graph.types.size()) {}

  void Project(std::span<const at::Tensor> inputs) {
    for (uint32_t t = 0; t < rows_.size(); ++t) {
      if (!needs_.Rows(0, t) || !inputs[t].defined() || inputs[t].size(0) == 0) continue;
      rows_[t] = ProjectInput(ContextOf(0, t), inputs[t]);
    }
  }

  void Run(uint32_t layer) {
    const uint32_t hop = model_.spec.num_layers - 1 - layer;
    std::vector<at::Tensor> next(rows_.size());
    for (uint32_t t = 0; t < rows_.size(); ++t) {
      if (!needs_.Rows(layer + 1, t)) continue;
      const uint32_t count = RowsBefore(sample_, hop, t);
      if (count == 0) continue;
      const std::vector<RelationInput> relations = RelationsOf(layer, hop, t, count);
      next[t] =
          ForwardRelations(ContextOf(layer, t), relations, FirstRows(rows_[t], count, workspace_));
    }
    rows_ = std::move(next);
  }

  const at::Tensor& logits() const { return rows_[0]; }

 private:
  RelationalContext ContextOf(uint32_t layer, uint32_t type) const {
    const uint32_t* nodes = sample_.nodes(type).data();
    return {model_, layer, type, parameters_, sample_.key(), nodes, trains_, workspace_};
  }

  std::vector<RelationInput> RelationsOf(uint32_t layer, uint32_t hop, uint32_t type,
                                         uint32_t count) const {
    std::vector<RelationInput> relations;
    for (uint32_t b = 0; b < sample_.num_blocks(); ++b) {
      const BlockView& block = sample_.block(b);
      if (block.hop != hop || block.dst_type != type || block.src.empty()) continue;
      if (!needs_.Takes(layer, block.relation)) continue;
      GNND_CHECK(block.num_dst == count);
      relations.push_back({block.relation, block, rows_[block.src_type]});
      // As many as there are: a part of the rows would be copied in backward.
      relations.back().block.num_src = static_cast<uint32_t>(relations.back().x.size(0));
    }
    return relations;
  }

  const Model& model_;
  std::span<const at::Tensor> parameters_;
  const Sample& sample_;
  const bool trains_;
  Workspace* workspace_;
  const RelationNeeds needs_;
  std::vector<at::Tensor> rows_;  // by type, of the present level
};

}  // namespace

bool GathersRows(const ModelSpec& spec) { return spec.type == ModelType::kHgt; }

at::Tensor ProjectInput(const RelationalContext& context, const at::Tensor& x) {
  const RelationTensors tensors = RelationTensors::Of(context.model.spec);
  const RelationTensors::Linear& mine = tensors.inputs[context.type];
  AffineInput input;
  input.x = x;
  input.weight = context.parameters[mine.weight];
  input.bias = context.parameters[mine.bias];
  return Affine(input, context.workspace);
}

at::Tensor ForwardRelations(const RelationalContext& context,
                            std::span<const RelationInput> relations, const at::Tensor& own) {
  // Where no row has an edge the sources may be no rows at all.
  std::vector<RelationInput> with_edges;
  for (const RelationInput& relation : relations) {
    if (!relation.block.src.empty()) with_edges.push_back(relation);
  }
  return ComputeLayer(context, with_edges, own, nullptr);
}

at::Tensor ForwardTyped(const Model& model, std::span<const at::Tensor> parameters,
                        const Sample& sample, std::span<const at::Tensor> inputs, bool trains,
                        Workspace* workspace) {
  GNND_CHECK(sample.num_node_types() == model.spec.graph.types.size());
  TypedPass pass(model, parameters, sample, trains, workspace);
  pass.Project(inputs);
  for (uint32_t layer = 0; layer < model.spec.num_layers; ++layer) pass.Run(layer);
  return pass.logits();
}

}  // namespace gnnd
