#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/batch/sample.h"
#include "core/history/history_buffer.h"

// Pruning (FreshGNN, PVLDB 17(6), section 3.4): the part of a sample that is still computed when
// embeddings of its nodes are stored. From the seeds down, a node whose embedding is found becomes
// a leaf: its row of that level is not computed, its edges are dropped, and nodes that only it
// reaches disappear. Seeds are computed on every level, whatever is stored, because their gradients
// are the largest (docs/decisions/0060).
//
// Levels count layers: rows of level l are the output of layer l of num_hops, level 0 the input
// features, level num_hops the seeds. The blocks of a pruned sample are compacted: their
// destinations are the rows that are computed, and each block names its own rows
// (BlockView::nodes).

namespace gnnd {

// The rows of one level as the layer above reads them: those that are computed, in their order,
// mixed with those that are stored.
struct LevelRows {
  uint32_t level = 0;
  uint32_t computed = 0;
  uint32_t stored = 0;
  std::span<const uint32_t> nodes;  // [computed + stored], global ids; the seeds first
  // For each row the place of its embedding, or kNoEmbedding if it is computed. Empty if this level
  // keeps no embeddings.
  std::span<const uint32_t> places;
};

class Pruner {
 public:
  // `levels`: bit l is set if level l keeps embeddings. The buffer numbers these levels in this
  // order, from 0.
  explicit Pruner(uint32_t levels) : levels_(levels) {}

  // The sample without everything that embeddings in `buffer` make superfluous at `version`;
  // without such embeddings, the same sample. Its spans and those of rows() are valid until the
  // next call. REQUIRES: a homogeneous sample whose node ids are below the buffer's num_nodes.
  const Sample& Prune(const Sample& sample, const HistoryBuffer& buffer, uint64_t version);

  // The rows of a level, after Prune; level is 1 to num_hops - 1.
  const LevelRows& rows(uint32_t level) const { return rows_[level]; }
  bool keeps(uint32_t level) const { return (levels_ >> level & 1) != 0; }
  // The number of a level in the buffer.
  uint32_t index_of(uint32_t level) const;

 private:
  // A block's arrays, reused from batch to batch to avoid allocations.
  struct Arrays {
    std::vector<uint32_t> indptr;
    std::vector<uint32_t> src;
    std::vector<float> weight;
    std::vector<float> self_weight;
    std::vector<uint32_t> positions;  // positions of its source rows in the sample's list of nodes
    std::vector<uint32_t> nodes;      // global ids of its source rows
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
  std::vector<uint32_t> local_;  // for each position: its row in the present block
  std::vector<uint32_t> ranks_;
};

}  // namespace gnnd
