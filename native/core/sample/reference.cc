#include "core/sample/reference.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/base/philox.h"
#include "core/sample/layout.h"

namespace gnnd {
namespace {

// One row that is drawn.
struct Row {
  const TopologyView& topology;
  const SamplerOptions& options;
  BatchKey key;
  uint32_t hop;
  uint32_t node;

  uint64_t degree() const { return topology.degree(node); }
  uint32_t neighbour(uint64_t position) const {
    return topology.indices[topology.indptr[node] + position];
  }
};

// A neighbour of a row and the weight of the edge to it.
struct Neighbour {
  uint32_t node;
  float weight;
};

// Word k of a stream of the row.
uint32_t WordOf(const Row& row, Purpose purpose, uint32_t k) {
  const PhiloxCounter counter =
      CounterOf(purpose, row.key.epoch, row.key.batch, row.hop, row.node, k / 4);
  return Philox(KeyOf(row.key.random_seed), counter).word[k % 4];
}

// High half of a 64 x 64-bit product, by halves.
uint64_t HighHalf(uint64_t a, uint64_t b) {
  const uint64_t a_lo = a & 0xFFFFFFFF;
  const uint64_t a_hi = a >> 32;
  const uint64_t b_lo = b & 0xFFFFFFFF;
  const uint64_t b_hi = b >> 32;
  const uint64_t middle = a_hi * b_lo + ((a_lo * b_lo) >> 32);
  const uint64_t carry = ((middle & 0xFFFFFFFF) + a_lo * b_hi) >> 32;
  return a_hi * b_hi + (middle >> 32) + carry;
}

// Words `at` and at + 1 as a draw in [0, bound).
uint64_t WideDraw(const Row& row, Purpose purpose, uint32_t at, uint64_t bound) {
  const uint64_t low = WordOf(row, purpose, at);
  const uint64_t high = WordOf(row, purpose, at + 1);
  return HighHalf(high << 32 | low, bound);
}

constexpr uint64_t kTwoWords = 1'048'576;

// Uniform draw j of a row: in [0, bound).
uint64_t UniformDraw(const Row& row, uint32_t j, uint64_t bound) {
  if (row.degree() >= kTwoWords) return WideDraw(row, Purpose::kSample, 2 * j, bound);
  return (WordOf(row, Purpose::kSample, j) * bound) >> 32;
}

std::vector<uint64_t> WholeRow(const Row& row) {
  std::vector<uint64_t> picks;
  for (uint64_t position = 0; position < row.degree(); ++position) picks.push_back(position);
  return picks;
}

// The positions that a row draws uniformly, in order (Floyd).
std::vector<uint64_t> PickUniform(const Row& row, uint32_t fanout) {
  std::vector<uint64_t> picks;
  const uint64_t degree = row.degree();
  if (row.options.replace) {
    for (uint32_t j = 0; j < fanout && degree > 0; ++j) {
      picks.push_back(UniformDraw(row, j, degree));
    }
    return picks;
  }
  if (degree <= fanout) return WholeRow(row);
  for (uint32_t j = 0; j < fanout; ++j) {
    const uint64_t largest = degree - fanout + j;
    const uint64_t t = UniformDraw(row, j, largest + 1);
    const bool taken = std::find(picks.begin(), picks.end(), t) != picks.end();
    picks.push_back(taken ? largest : t);
  }
  return picks;
}

std::vector<Neighbour> NeighboursAt(const Row& row, const std::vector<uint64_t>& positions) {
  std::vector<Neighbour> neighbours;
  for (const uint64_t position : positions) neighbours.push_back({row.neighbour(position), 1});
  return neighbours;
}

std::vector<Neighbour> NeighboursOf(const Row& row) {
  const int32_t fanout = row.options.fanouts[row.hop];
  if (fanout == kFullNeighbourhood) return NeighboursAt(row, WholeRow(row));
  return NeighboursAt(row, PickUniform(row, static_cast<uint32_t>(fanout)));
}

void FillGcnWeights(const TopologyView& topology, const std::vector<uint32_t>& nodes,
                    ReferenceBlock* block) {
  const auto degree = [&](uint32_t local) {
    return static_cast<double>(topology.degree(nodes[local]));
  };
  const auto inv = [&](uint32_t local) { return 1.0 / std::sqrt(degree(local) + 1.0); };
  for (uint32_t v = 0; v + 1 < block->indptr.size(); ++v) {
    const uint32_t taken = block->indptr[v + 1] - block->indptr[v];
    for (uint32_t e = block->indptr[v]; e < block->indptr[v + 1]; ++e) {
      const double scale = degree(v) / static_cast<double>(taken);
      block->weight[e] = static_cast<float>(inv(block->src[e]) * (inv(v) * scale));
    }
    block->self_weight.push_back(static_cast<float>(1.0 / (degree(v) + 1.0)));
  }
}

}  // namespace

ReferenceSample SampleReference(const TopologyView& topology, const SamplerOptions& options,
                                const BatchKey& key, std::span<const uint32_t> seeds) {
  ReferenceSample sample;
  std::unordered_map<uint32_t, uint32_t> local_ids;
  const auto local_id = [&](uint32_t node) {
    const auto [entry, is_new] =
        local_ids.try_emplace(node, static_cast<uint32_t>(sample.nodes.size()));
    if (is_new) sample.nodes.push_back(node);
    return entry->second;
  };
  for (const uint32_t seed : seeds) local_id(seed);

  ReferenceBlock block;
  for (uint32_t hop = 0; hop < options.fanouts.size(); ++hop) {
    if (hop == 0 || options.expansion == Expansion::kAll) block = ReferenceBlock{{0}, {}, {}, {}};
    const size_t num_dst = sample.nodes.size();
    for (size_t v = block.indptr.size() - 1; v < num_dst; ++v) {
      for (const auto& [node, weight] :
           NeighboursOf({topology, options, key, hop, sample.nodes[v]})) {
        block.src.push_back(local_id(node));
        if (options.weights != EdgeWeights::kNone) block.weight.push_back(weight);
      }
      block.indptr.push_back(static_cast<uint32_t>(block.src.size()));
    }
    sample.blocks.push_back(block);
    if (options.weights == EdgeWeights::kGcn) {
      FillGcnWeights(topology, sample.nodes, &sample.blocks.back());
    }
  }
  return sample;
}

}  // namespace gnnd
