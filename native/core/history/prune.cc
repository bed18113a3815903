#include "core/history/prune.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/base/check.h"

namespace gnnd {
namespace {

constexpr uint32_t kNoRow = UINT32_MAX;

}  // namespace

uint32_t Pruner::index_of(uint32_t level) const {
  return static_cast<uint32_t>(std::popcount(levels_ & ((1U << level) - 1)));
}

// Copies the rows of `block` whose positions are in live_, and the sources that they read: the rows
// themselves first, then others in the order in which edges name them.
void Pruner::Compact(const BlockView& block, Arrays* out) {
  const auto rows = static_cast<uint32_t>(live_.size());
  local_.assign(block.num_src, kNoRow);
  out->positions.assign(live_.begin(), live_.end());
  out->indptr.assign(1, 0);
  out->weight.clear();
  out->self_weight.clear();
  uint64_t edges = 0;
  for (uint32_t row = 0; row < rows; ++row) {
    local_[live_[row]] = row;
    edges += block.indptr[live_[row] + 1] - block.indptr[live_[row]];
    out->indptr.push_back(static_cast<uint32_t>(edges));
  }
  out->src.resize(edges);
  out->positions.resize(std::min<uint64_t>(block.num_src, rows + edges));
  uint32_t next = rows;
  uint32_t* to = out->src.data();
  for (const uint32_t from : live_) {
    for (uint32_t edge = block.indptr[from]; edge < block.indptr[from + 1]; ++edge) {
      uint32_t& at = local_[block.src[edge]];
      if (at == kNoRow) {
        out->positions[next] = block.src[edge];
        at = next++;
      }
      *to++ = at;
    }
    if (!block.weight.empty()) {
      const auto begin = block.weight.begin();
      out->weight.insert(out->weight.end(), begin + block.indptr[from],
                         begin + block.indptr[from + 1]);
    }
    if (!block.self_weight.empty()) out->self_weight.push_back(block.self_weight[from]);
  }
  out->positions.resize(next);
}

// Looks up the embeddings of a block's source rows except the seeds', which come first; the rows
// without one become the next block's destinations.
void Pruner::LookUp(uint32_t level, const HistoryBuffer& buffer, uint64_t version, Arrays* arrays) {
  arrays->places.clear();
  live_.clear();
  if (!keeps(level)) {
    live_ = arrays->positions;
    return;
  }
  arrays->places.assign(arrays->nodes.size(), kNoEmbedding);
  buffer.FindAll(index_of(level), std::span(arrays->nodes).subspan(num_seeds_), version,
                 std::span(arrays->places).subspan(num_seeds_));
  for (size_t i = 0; i < arrays->places.size(); ++i) {
    if (arrays->places[i] == kNoEmbedding) live_.push_back(arrays->positions[i]);
  }
}

const Sample& Pruner::Prune(const Sample& sample, const HistoryBuffer& buffer, uint64_t version) {
  GNND_CHECK(sample.homogeneous());
  const uint32_t hops = sample.num_hops();
  const std::span<const uint32_t> nodes = sample.nodes();
  num_seeds_ = sample.num_seeds();
  live_.resize(num_seeds_);
  std::iota(live_.begin(), live_.end(), 0U);
  BlockView blocks[kMaxHops];
  for (uint32_t hop = 0; hop < hops; ++hop) {
    const BlockView& block = sample.block(hop);
    Arrays& arrays = arrays_[hop];
    Compact(block, &arrays);
    arrays.nodes.resize(arrays.positions.size());
    for (size_t i = 0; i < arrays.nodes.size(); ++i) arrays.nodes[i] = nodes[arrays.positions[i]];
    BlockView& view = blocks[hop];
    view.num_dst = static_cast<uint32_t>(arrays.indptr.size() - 1);
    view.num_src = static_cast<uint32_t>(arrays.positions.size());
    view.indptr = arrays.indptr;
    view.src = arrays.src;
    view.weight = arrays.weight;
    view.self_weight = arrays.self_weight;
    view.hop = hop;
    view.nodes = arrays.nodes;
    if (hop + 1 == hops) break;
    const uint32_t level = hops - 1 - hop;
    LookUp(level, buffer, version, &arrays);
    const auto computed = static_cast<uint32_t>(live_.size());
    rows_[level] = {level, computed, view.num_src - computed, arrays.nodes, arrays.places};
  }
  const Arrays& bottom = arrays_[hops - 1];
  ranks_.clear();
  if (!sample.ranks().empty()) {
    ranks_.resize(bottom.positions.size());
    for (size_t i = 0; i < ranks_.size(); ++i) ranks_[i] = sample.ranks()[bottom.positions[i]];
  }
  pruned_ = Sample(SampleKind::kBlocks, sample.key());
  pruned_.AddNodes(bottom.nodes, sample.num_seeds(), ranks_);
  for (uint32_t hop = 0; hop < hops; ++hop) pruned_.AddBlock(blocks[hop]);
  pruned_.SetPairs(sample.pairs());  // seeds keep their rows
  return pruned_;
}

}  // namespace gnnd
