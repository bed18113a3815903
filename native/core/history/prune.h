#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/batch/sample.h"
#include "core/history/history_buffer.h"

// Pruning (FreshGNN, PVLDB 17(6), section 3.4): what of a sample is still computed when embeddings
// of its nodes are stored. From the seeds down, a node whose embedding is found becomes a leaf:
// its row of that level is not computed, its edges are left out, and what nobody else reaches is
// not there at all. Seeds are computed on every level, whatever is stored: nobody's gradients are
// larger (docs/decisions/0060).
//
// Levels count layers: rows of level l are what layer l of num_hops gives, 0 the input features,
// num_hops the seeds. The blocks of a pruned sample are compacted: their destinations are the rows
// that are computed, and each block names its rows itself (BlockView::nodes).

namespace gnnd {

// The rows of one level, as the layer above reads them: those that are computed, in their order,
// among those that are stored.
struct LevelRows {
  uint32_t level = 0;
  uint32_t computed = 0;
  uint32_t stored = 0;
  std::span<const uint32_t> nodes;  // [computed + stored], global ids; the seeds first
  // Of each row: the place of its embedding, kNoEmbedding where it is computed. Empty where
  // embeddings of this level are not kept.
  std::span<const uint32_t> places;
};

class Pruner {
 public:
  // The levels that keep embeddings, bit l for level l. In the buffer they are numbered in this
  // order, from 0.
  explicit Pruner(uint32_t levels) : levels_(levels) {}

  // A sample without what embeddings in `buffer` make superfluous at `version`; without any of them
  // it is the same sample. Its spans, and those of rows(), are this object's, until the next call.
  // REQUIRES: a homogeneous sample whose node ids are below the buffer's num_nodes.
  const Sample& Prune(const Sample& sample, const HistoryBuffer& buffer, uint64_t version);

  // Of the level, after Prune; level is 1 to num_hops - 1.
  const LevelRows& rows(uint32_t level) const { return rows_[level]; }
  bool keeps(uint32_t level) const { return (levels_ >> level & 1) != 0; }
  // The number of a level in the buffer.
  uint32_t index_of(uint32_t level) const;

 private:
  // A block's arrays, kept from batch to batch so that nothing is allocated.
  struct Arrays {
    std::vector<uint32_t> indptr;
    std::vector<uint32_t> src;
    std::vector<float> weight;
    std::vector<float> self_weight;
    std::vector<uint32_t> positions;  // of its source rows, in the sample's list of nodes
    std::vector<uint32_t> nodes;      // likewise, global ids
    std::vector<uint32_t> places;
  };

  void Compact(const BlockView& block, Arrays* out);
  void LookUp(uint32_t level, const HistoryBuffer& buffer, uint64_t version, Arrays* arrays);

  uint32_t levels_;
  uint32_t num_seeds_ = 0;
  Sample pruned_;
  Arrays arrays_[kMaxHops];
  LevelRows rows_[kMaxHops];
  std::vector<uint32_t> live_;   // destinations of the next block, positions
  std::vector<uint32_t> local_;  // of each position: its row in the block at hand
  std::vector<uint32_t> ranks_;
};

}  // namespace gnnd
