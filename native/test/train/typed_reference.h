#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/draw/type_seed.h"
#include "core/model/relation_manifest.h"
#include "test/support/typed_graphs.h"
#include "test/train/dense_reference.h"

// The models over relations in float64 on dense matrices by torch's own operators, and samples that
// plain containers hold: what train/layers/relational.h must equal.

namespace gnnd::test {

// A sample of a typed graph as core/batch/sample.h describes it, by the test's own draws.
class TypedSample {
 public:
  // fanout < 0 takes all neighbours.
  TypedSample(const TypedGraph& graph, const BatchKey& key, const std::vector<uint32_t>& seeds,
              uint32_t hops, int32_t fanout)
      : nodes_(graph.num_nodes.size()), local_(graph.num_nodes.size()), random_(key.random_seed) {
    for (const uint32_t seed : seeds) LocalId(0, seed);
    for (uint32_t hop = 0; hop < hops; ++hop) {
      std::vector<size_t> before;
      for (const auto& list : nodes_) before.push_back(list.size());
      for (uint32_t r = 0; r < graph.relations.size(); ++r) {
        const size_t rows = before[graph.relations[r].dst_type];
        if (rows > 0) Expand(graph, hop, r, rows, fanout);
      }
    }
    sample_ = Sample(SampleKind::kBlocks, key);
    for (size_t t = 0; t < nodes_.size(); ++t) {
      sample_.AddNodes(nodes_[t], t == 0 ? static_cast<uint32_t>(seeds.size()) : 0, {});
    }
    for (const Block& block : blocks_) {
      BlockView view = block.view;
      view.indptr = block.indptr;
      view.src = block.src;
      sample_.AddBlock(view);
    }
  }
  TypedSample(const TypedSample&) = delete;
  TypedSample& operator=(const TypedSample&) = delete;

  const Sample& view() const { return sample_; }

 private:
  struct Block {
    BlockView view;
    std::vector<uint32_t> indptr = {0};
    std::vector<uint32_t> src;
  };

  uint32_t LocalId(uint32_t type, uint32_t node) {
    const auto next = static_cast<uint32_t>(nodes_[type].size());
    const auto [at, is_new] = local_[type].emplace(node, next);
    if (is_new) nodes_[type].push_back(node);
    return at->second;
  }

  void Expand(const TypedGraph& graph, uint32_t hop, uint32_t relation, size_t rows,
              int32_t fanout) {
    const TypedGraph::Relation& of = graph.relations[relation];
    Block block;
    for (size_t row = 0; row < rows; ++row) {
      const uint32_t node = nodes_[of.dst_type][row];
      const auto first = of.rows.indices.begin();
      std::vector<uint32_t> picks(first + static_cast<int64_t>(of.rows.indptr[node]),
                                  first + static_cast<int64_t>(of.rows.indptr[node + 1]));
      if (fanout >= 0 && picks.size() > static_cast<size_t>(fanout)) {
        std::shuffle(picks.begin(), picks.end(), random_);
        picks.resize(static_cast<size_t>(fanout));
      }
      for (const uint32_t pick : picks) block.src.push_back(LocalId(of.src_type, pick));
      block.indptr.push_back(static_cast<uint32_t>(block.src.size()));
    }
    block.view.num_dst = static_cast<uint32_t>(rows);
    block.view.num_src = static_cast<uint32_t>(nodes_[of.src_type].size());
    block.view.hop = hop;
    block.view.relation = relation;
    block.view.dst_type = of.dst_type;
    block.view.src_type = of.src_type;
    blocks_.push_back(std::move(block));
  }

  std::vector<std::vector<uint32_t>> nodes_;
  std::vector<std::unordered_map<uint32_t, uint32_t>> local_;
  std::mt19937_64 random_;
  std::vector<Block> blocks_;
  Sample sample_;
};

// The model's description of a graph, with input rows of as many columns by type.
inline ModelGraph ModelGraphOf(const TypedGraph& graph, const std::vector<uint32_t>& in_dims) {
  ModelGraph model;
  for (size_t t = 0; t < graph.num_nodes.size(); ++t) {
    model.types.push_back({std::string("type").append(std::to_string(t)), in_dims[t]});
  }
  for (size_t r = 0; r < graph.relations.size(); ++r) {
    const TypedGraph::Relation& relation = graph.relations[r];
    model.relations.push_back(
        {relation.src_type, std::string("r").append(std::to_string(r)), relation.dst_type});
  }
  return model;
}

// The dense computation. Which rows matter follows from the length of the shortest path of
// relations to type 0.
class TypedReference {
 public:
  TypedReference(const ModelSpec& spec, const std::vector<at::Tensor>& parameters,
                 const Sample& sample, bool trains)
      : spec_(spec), sample_(sample), trains_(trains) {
    const ParameterManifest manifest = *ManifestOf(spec);
    for (size_t t = 0; t < parameters.size(); ++t) {
      named_[manifest.tensors[t].name] = parameters[t];
    }
    constexpr uint32_t kFar = 1000;
    steps_.assign(spec.graph.types.size(), kFar);
    steps_[0] = 0;
    for (size_t round = 0; round < steps_.size(); ++round) {
      for (const ModelGraph::Relation& r : spec.graph.relations) {
        steps_[r.source] = std::min(steps_[r.source], steps_[r.destination] + 1);
      }
    }
  }

  at::Tensor Logits(const std::vector<at::Tensor>& inputs) {
    std::vector<at::Tensor> rows(inputs.size());
    for (size_t t = 0; t < inputs.size(); ++t) {
      if (steps_[t] <= spec_.num_layers && inputs[t].defined()) {
        rows[t] = Linear("lin_in." + Type(t), inputs[t]);
      }
    }
    for (uint32_t layer = 0; layer < spec_.num_layers; ++layer) {
      std::vector<at::Tensor> next(rows.size());
      const uint32_t left = spec_.num_layers - 1 - layer;
      for (size_t t = 0; t < rows.size(); ++t) {
        if (steps_[t] > left) continue;
        const int64_t count = Before(left, t);
        if (count > 0) next[t] = LayerRows(layer, t, rows, rows[t].narrow(0, 0, count));
      }
      rows = next;
    }
    return spec_.type == ModelType::kHgt ? Linear("lin_out", rows[0]) : rows[0];
  }

 private:
  const std::string& Type(size_t type) const { return spec_.graph.types[type].name; }
  at::Tensor Linear(const std::string& name, const at::Tensor& x) const {
    return x.mm(named_.at(name + ".weight").t()) + named_.at(name + ".bias");
  }

  // Rows of the type that are destinations of a hop.
  int64_t Before(uint32_t hop, size_t type) const {
    int64_t rows = type == 0 ? sample_.num_seeds() : 0;
    for (uint32_t b = 0; b < sample_.num_blocks(); ++b) {
      const BlockView& block = sample_.block(b);
      if (block.hop < hop && block.src_type == type) rows = std::max<int64_t>(rows, block.num_src);
    }
    return rows;
  }

  std::vector<BlockView> BlocksOf(uint32_t layer, size_t type) const {
    std::vector<BlockView> blocks;
    for (uint32_t b = 0; b < sample_.num_blocks(); ++b) {
      const BlockView& block = sample_.block(b);
      // Without edges there need not be a row of the source's type.
      const bool is_of_hop = block.hop == spec_.num_layers - 1 - layer && !block.src.empty();
      if (is_of_hop && block.dst_type == type) blocks.push_back(block);
    }
    return blocks;
  }

  at::Tensor LayerRows(uint32_t layer, size_t type, const std::vector<at::Tensor>& rows,
                       const at::Tensor& own) const {
    const bool is_hgt = spec_.type == ModelType::kHgt;
    const std::string place = "convs." + std::to_string(layer) + ".";
    at::Tensor z = is_hgt ? Attention(place, layer, type, rows, own)
                          : Convolution(place, layer, type, rows, own);
    if (!is_hgt && layer + 1 == spec_.num_layers) return z;
    if (spec_.residual) z = z + own;
    if (spec_.normalization == Normalization::kLayer) {
      const std::string norm = "norms." + std::to_string(layer) + "." + Type(type);
      z = at::layer_norm(z, {z.size(1)}, named_.at(norm + ".weight"), named_.at(norm + ".bias"));
    }
    if (!is_hgt) z = DenseActivation(spec_, z);
    if (spec_.normalization == Normalization::kL2) {
      z = z / z.norm(2, {1}, true).clamp_min(1e-12);
    }
    if (!trains_ || spec_.dropout == 0) return z;
    const auto nodes = sample_.nodes(static_cast<uint32_t>(type)).first(z.size(0));
    return z * MaskOf(KeyOfType(type), layer + 1, nodes, z.size(1), spec_.dropout);
  }

  BatchKey KeyOfType(size_t type) const {
    BatchKey key = sample_.key();
    key.random_seed = SeedOfType(key.random_seed, static_cast<uint32_t>(type));
    return key;
  }

  // The matrix of one of the relations that the layer takes.
  at::Tensor WeightOf(const std::string& place, uint32_t layer, uint32_t relation) const {
    if (spec_.bases == 0) {
      return named_.at(place + NameOf(spec_.graph, spec_.graph.relations[relation]) + ".weight");
    }
    int64_t row = 0;
    for (uint32_t r = 0; r < relation; ++r) {
      if (steps_[spec_.graph.relations[r].destination] < spec_.num_layers - layer) ++row;
    }
    const at::Tensor bases = named_.at(place + "weight");
    const at::Tensor shares = named_.at(place + "comp")[row];
    return shares.matmul(bases.view({shares.size(0), -1})).view({-1, bases.size(1)});
  }

  at::Tensor Convolution(const std::string& place, uint32_t layer, size_t type,
                         const std::vector<at::Tensor>& rows, const at::Tensor& own) const {
    const bool shares = spec_.type == ModelType::kRgcn;
    const std::string root = shares ? "root" : Type(type) + ".root.weight";
    const std::string bias = shares ? "bias" : Type(type) + ".bias";
    at::Tensor z = own.mm(named_.at(place + root).t()) + named_.at(place + bias);
    for (const BlockView& block : BlocksOf(layer, type)) {
      const at::Tensor x = rows[block.src_type].narrow(0, 0, block.num_src);
      const at::Tensor mean = MatrixOf(block, ModelType::kGraphSage).mm(x);
      z = z + mean.mm(WeightOf(place, layer, block.relation).t());
    }
    return z;
  }

  // How often each source is an edge of each row, of all and after dropout of one head's
  // coefficients: one matrix a block.
  std::pair<std::vector<at::Tensor>, std::vector<at::Tensor>> Counts(
      const std::vector<BlockView>& blocks, uint32_t layer, size_t type, uint32_t head) const {
    std::vector<at::Tensor> all;
    std::vector<at::Tensor> kept;
    std::vector<uint32_t> position(blocks.empty() ? 0 : blocks[0].num_dst, 0);
    const float p = trains_ ? spec_.attention_dropout : 0.0F;
    const BatchKey key = KeyOfType(type);
    for (const BlockView& block : blocks) {
      all.push_back(at::zeros({block.num_dst, block.num_src}, at::kDouble));
      kept.push_back(at::zeros_like(all.back()));
      auto of_all = all.back().accessor<double, 2>();
      auto of_kept = kept.back().accessor<double, 2>();
      for (uint32_t d = 0; d < block.num_dst; ++d) {
        const uint32_t node = sample_.nodes(static_cast<uint32_t>(type))[d];
        for (uint32_t e = block.indptr[d]; e < block.indptr[d + 1]; ++e) {
          const uint32_t draw = (++position[d]) * spec_.heads + head;
          const PhiloxCounter counter =
              CounterOf(Purpose::kAttentionDropout, key.epoch, key.batch, layer, node, draw / 4);
          const float unit = UnitDraw(Philox(KeyOf(key.random_seed), counter).word[draw % 4]);
          of_all[d][block.src[e]] += 1;
          if (unit >= p) of_kept[d][block.src[e]] += 1.0 / (1.0 - static_cast<double>(p));
        }
      }
    }
    return {all, kept};
  }

  at::Tensor Attention(const std::string& place, uint32_t layer, size_t type,
                       const std::vector<at::Tensor>& rows, const at::Tensor& own) const {
    if (!named_.contains(place + Type(type) + ".q.weight")) return own;
    const std::vector<BlockView> blocks = BlocksOf(layer, type);
    const int64_t columns = spec_.hidden_dim / spec_.heads;
    std::vector<at::Tensor> outputs;
    for (uint32_t h = 0; h < spec_.heads; ++h) {
      const auto of_head = [&](const at::Tensor& x) { return x.narrow(1, h * columns, columns); };
      const at::Tensor query = of_head(Linear(place + Type(type) + ".q", own));
      const auto [all, kept] = Counts(blocks, layer, type, h);
      at::Tensor sum = at::zeros({own.size(0), columns}, at::kDouble);
      at::Tensor total = at::zeros({own.size(0), 1}, at::kDouble);
      for (size_t b = 0; b < blocks.size(); ++b) {
        const ModelGraph::Relation& relation = spec_.graph.relations[blocks[b].relation];
        const std::string name = place + NameOf(spec_.graph, relation);
        const at::Tensor x = rows[relation.source].narrow(0, 0, blocks[b].num_src);
        const auto map = [&](const std::string& of_type, const std::string& matrices) {
          const at::Tensor matrix = named_.at(name + matrices).view({-1, columns, columns})[h];
          return of_head(Linear(place + Type(relation.source) + of_type, x)).mm(matrix.t());
        };
        const at::Tensor prior = named_.at(name + ".p_rel")[h];
        const at::Tensor power =
            (query.mm(map(".k", ".a_rel").t()) * prior / std::sqrt(columns)).exp();
        total = total + (power * all[b]).sum(1, true);
        sum = sum + (power * kept[b]).mm(map(".v", ".m_rel"));
      }
      outputs.push_back(sum / at::where(total == 0, at::ones_like(total), total));
    }
    const at::Tensor out = Linear(place + Type(type) + ".a", at::gelu(at::cat(outputs, 1)));
    const at::Tensor gate = named_.at(place + Type(type) + ".skip").sigmoid();
    return gate * out + (1 - gate) * own;
  }

  const ModelSpec& spec_;
  const Sample& sample_;
  const bool trains_;
  std::map<std::string, at::Tensor> named_;
  std::vector<uint32_t> steps_;  // relations between a type and type 0
};

}  // namespace gnnd::test
