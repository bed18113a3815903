#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/draw/type_seed.h"
#include "train/layers/relation_layer.h"
#include "train/ops/attention.h"
#include "train/ops/ops.h"
#include "train/ops/relation_ops.h"

namespace gnnd {
namespace {

// A linear map of a type followed by a relation's matrix of each head, as one linear map. `scale`
// is a factor of each head, or undefined.
at::Tensor ThroughRelation(const RelationLayer& layer, const at::Tensor& x,
                           const RelationTensors::Linear& linear, const at::Tensor& matrices,
                           const at::Tensor& scale) {
  const int64_t heads = layer.spec().heads;
  const at::Tensor bias = layer[linear.bias];
  AffineInput input;
  input.x = x;
  input.weight = ComposeWeights(matrices, layer[linear.weight], scale, heads, layer.workspace());
  input.bias =
      ComposeWeights(matrices, bias.view({-1, 1}), scale, heads, layer.workspace()).view({-1});
  return Affine(input, layer.workspace());
}

// The relation with the rows that its edges name alone, where these are at most half of them: each
// is multiplied by two matrices. A batch's relations share the rows of a type, and few name most.
RelationInput Named(const RelationInput& relation, Workspace* workspace) {
  const BlockView& block = relation.block;
  auto* const place = workspace->Get<uint32_t>(block.num_src);
  std::fill_n(place, block.num_src, 0U);
  for (const uint32_t row : block.src) place[row] = 1;
  const auto count = static_cast<uint32_t>(std::count(place, place + block.num_src, 1U));
  if (count > block.num_src / 2) return relation;
  auto* const indptr = workspace->Get<uint32_t>(uint64_t{count} + 1);
  auto* const rows = workspace->Get<uint32_t>(count);
  uint32_t at = 0;
  for (uint32_t row = 0; row < block.num_src; ++row) {
    if (place[row] == 0) continue;
    indptr[at] = at;
    rows[at] = row;
    place[row] = at++;
  }
  indptr[count] = count;
  auto* const src = workspace->Get<uint32_t>(block.src.size());
  for (size_t e = 0; e < block.src.size(); ++e) src[e] = place[block.src[e]];
  BlockView taken;
  taken.num_dst = count;
  taken.num_src = block.num_src;
  taken.indptr = {indptr, uint64_t{count} + 1};
  taken.src = {rows, count};
  RelationInput named = relation;
  named.x = Aggregate(relation.x, taken, Reduction::kSum, /*with_self=*/false, workspace).first;
  named.block.num_src = count;
  named.block.src = {src, block.src.size()};
  return named;
}

// The edges of all relations as those of one block: a row's edges stand by relation, and sources
// below each other, as Stack has their keys and values.
BlockView MergedBlock(std::span<const RelationInput> relations, Workspace* workspace) {
  const uint32_t rows = relations[0].block.num_dst;
  uint64_t num_edges = 0;
  for (const RelationInput& relation : relations) num_edges += relation.block.src.size();
  auto* const indptr = workspace->Get<uint32_t>(uint64_t{rows} + 1);
  auto* const src = workspace->Get<uint32_t>(num_edges);
  uint32_t at = 0;
  for (uint32_t row = 0; row < rows; ++row) {
    indptr[row] = at;
    uint32_t first = 0;
    for (const RelationInput& relation : relations) {
      const BlockView& block = relation.block;
      for (uint32_t e = block.indptr[row]; e < block.indptr[row + 1]; ++e) {
        src[at++] = first + block.src[e];
      }
      first += block.num_src;
    }
  }
  indptr[rows] = at;
  BlockView merged;
  merged.num_dst = rows;
  for (const RelationInput& relation : relations) merged.num_src += relation.block.num_src;
  merged.indptr = {indptr, uint64_t{rows} + 1};
  merged.src = {src, num_edges};
  return merged;
}

// The sums of values that rows gather, weighted by one softmax over the edges of all relations.
at::Tensor Gathered(const RelationLayer& layer, std::span<const RelationInput> given,
                    const at::Tensor& own) {
  const RelationalContext& context = layer.context();
  std::vector<RelationInput> relations;
  for (const RelationInput& relation : given) {
    relations.push_back(Named(relation, layer.workspace()));
  }
  const RelationTensors::Linear& query = layer.OfType(context.type).query;
  std::vector<at::Tensor> keys;
  std::vector<at::Tensor> values;
  for (const RelationInput& relation : relations) {
    const uint32_t source = layer.spec().graph.relations[relation.relation].source;
    const RelationTensors::OfType& type = layer.OfType(source);
    const RelationTensors::OfRelation& mine = layer.OfRelation(relation.relation);
    keys.push_back(
        ThroughRelation(layer, relation.x, type.key, layer[mine.key], layer[mine.prior]));
    values.push_back(ThroughRelation(layer, relation.x, type.value, layer[mine.value], {}));
  }
  AttentionInput input;
  input.key = Stack(keys, layer.workspace());
  input.source = Stack(values, layer.workspace());
  input.destination =
      Affine({own, layer[query.weight], {}, {}, layer[query.bias]}, layer.workspace());
  input.heads = layer.spec().heads;
  const BatchKey& key = context.key;
  const AttentionDropout dropout{
      {SeedOfType(key.random_seed, context.type), key.epoch, key.batch, context.layer},
      context.nodes,
      context.trains ? layer.spec().attention_dropout : 0.0F};
  return Attend(input, MergedBlock(relations, layer.workspace()), dropout, layer.workspace());
}

}  // namespace

// Hu et al., WWW 2020, like torch_geometric's HGTConv. Rows of a type that no relation leads to
// stay as they are.
at::Tensor AttendToRelations(const RelationLayer& layer, std::span<const RelationInput> relations,
                             const at::Tensor& own) {
  const RelationTensors::OfType& mine = layer.OfType(layer.context().type);
  if (mine.query.weight == kNoTensor) return own.clone();
  at::Tensor gathered;
  if (relations.empty()) {
    gathered = EmptyIn(layer.workspace(), own, own.size(0), own.size(1)).zero_();
  } else {
    gathered = Gathered(layer, relations, own);
  }
  const at::Tensor out = Affine(
      {Gelu(gathered, layer.workspace()), layer[mine.out.weight], {}, {}, layer[mine.out.bias]},
      layer.workspace());
  return Gate(out, own, layer[mine.skip], layer.workspace());
}

}  // namespace gnnd
