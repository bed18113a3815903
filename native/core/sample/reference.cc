#include "core/sample/reference.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/base/philox.h"

namespace gnnd {
namespace {

// Word k of the row of `node`.
uint32_t RowWord(const BatchKey& key, uint32_t hop, uint32_t node, uint32_t k) {
  const PhiloxCounter counter = CounterOf(Purpose::kSample, key.epoch, key.batch, hop, node, k / 4);
  return Philox(KeyOf(key.random_seed), counter).word[k % 4];
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

// Draw j of a row: uniform in [0, bound).
uint64_t Draw(const BatchKey& key, uint32_t hop, uint32_t node, uint64_t degree, uint32_t j,
              uint64_t bound) {
  constexpr uint64_t kTwoWords = 1'048'576;
  if (degree < kTwoWords) return (RowWord(key, hop, node, j) * bound) >> 32;
  const uint64_t low = RowWord(key, hop, node, 2 * j);
  const uint64_t high = RowWord(key, hop, node, 2 * j + 1);
  return HighHalf(high << 32 | low, bound);
}

// The positions that a row draws, in order (Floyd).
std::vector<uint64_t> PickRow(const BatchKey& key, uint32_t hop, uint32_t node, uint64_t degree,
                              int32_t fanout) {
  std::vector<uint64_t> picks;
  if (fanout == kFullNeighbourhood || degree <= static_cast<uint64_t>(fanout)) {
    for (uint64_t position = 0; position < degree; ++position) picks.push_back(position);
    return picks;
  }
  const auto f = static_cast<uint32_t>(fanout);
  for (uint32_t j = 0; j < f; ++j) {
    const uint64_t largest = degree - f + j;
    const uint64_t t = Draw(key, hop, node, degree, j, largest + 1);
    const bool taken = std::find(picks.begin(), picks.end(), t) != picks.end();
    picks.push_back(taken ? largest : t);
  }
  return picks;
}

void AddGcnWeights(const TopologyView& topology, const std::vector<uint32_t>& nodes,
                   ReferenceBlock* block) {
  const auto degree = [&](uint32_t local) {
    return static_cast<double>(topology.degree(nodes[local]));
  };
  const auto inv = [&](uint32_t local) { return 1.0 / std::sqrt(degree(local) + 1.0); };
  for (uint32_t v = 0; v + 1 < block->indptr.size(); ++v) {
    const uint32_t taken = block->indptr[v + 1] - block->indptr[v];
    for (uint32_t e = block->indptr[v]; e < block->indptr[v + 1]; ++e) {
      const double scale = degree(v) / static_cast<double>(taken);
      block->weight.push_back(static_cast<float>(inv(block->src[e]) * (inv(v) * scale)));
    }
    block->self_weight.push_back(static_cast<float>(1.0 / (degree(v) + 1.0)));
  }
}

}  // namespace

ReferenceSample SampleReference(const TopologyView& topology, std::span<const int32_t> fanouts,
                                EdgeWeights weights, const BatchKey& key,
                                std::span<const uint32_t> seeds) {
  ReferenceSample sample;
  std::unordered_map<uint32_t, uint32_t> local_ids;
  const auto local_id = [&](uint32_t node) {
    const auto [entry, is_new] =
        local_ids.try_emplace(node, static_cast<uint32_t>(sample.nodes.size()));
    if (is_new) sample.nodes.push_back(node);
    return entry->second;
  };
  for (const uint32_t seed : seeds) local_id(seed);

  for (uint32_t hop = 0; hop < fanouts.size(); ++hop) {
    ReferenceBlock block;
    block.indptr.push_back(0);
    const size_t num_dst = sample.nodes.size();
    for (size_t v = 0; v < num_dst; ++v) {
      const uint32_t node = sample.nodes[v];
      for (const uint64_t position : PickRow(key, hop, node, topology.degree(node), fanouts[hop])) {
        block.src.push_back(local_id(topology.indices[topology.indptr[node] + position]));
      }
      block.indptr.push_back(static_cast<uint32_t>(block.src.size()));
    }
    if (weights == EdgeWeights::kGcn) AddGcnWeights(topology, sample.nodes, &block);
    sample.blocks.push_back(std::move(block));
  }
  return sample;
}

}  // namespace gnnd
