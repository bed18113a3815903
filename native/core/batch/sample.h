#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/check.h"
#include "core/draw/batch_key.h"

// A sample is what a Sampler makes of a batch, as its users see it: models, extraction, pruning. It
// consists of spans and numbers; record.h knows where they lie and in which format.
//
// Node ids are global ids within a type; all other ids are local to the batch: positions in the
// list of nodes of their type.
//
// Invariants, which OpenRecord checks:
//   1. nodes(t)[0 .. num_seeds(t)) are the seeds in batch order; ids are unique within a type;
//   2. blocks stand by hop, hop 0 at the seeds, and within a hop by relation. A block's
//      destinations are all nodes of dst_type that were there before its hop, its sources are
//      nodes(src_type)[0 .. num_src): those that were there before the block come first, then new
//      nodes in order of first occurrence;
//   3. indptr is monotone from 0 to the number of edges; src[e] < num_src, in the order drawn.
//
//   4. a relation has the same types in all of its blocks and, where these share their rows, one in
//      each hop from its first one on;
//   5. a batch of links has pairs, whose rows are rows of seeds.
//
// A graph of one type and one relation has one block per hop: block(h) is that of hop h, and
// block(h + 1) has num_dst = block(h).num_src.
//
// A pruned sample belongs to no record: its list holds the last block's sources (3 holds, 1 and 2
// do not), and each block names its own rows.

namespace gnnd {

inline constexpr uint32_t kMaxHops = 8;
inline constexpr uint32_t kMaxNodeTypes = 64;
inline constexpr uint32_t kMaxRelations = 256;
inline constexpr uint32_t kMaxBlocks = kMaxHops * kMaxRelations;

enum class SampleKind : uint32_t {
  kBlocks = 1,
  kRows = 2,  // nodes without neighbours: batches of pre-propagated rows, which need no Sampler
};

// One hop along one relation: bipartite CSC from source rows to destination rows.
struct BlockView {
  uint32_t num_dst = 0;
  uint32_t num_src = 0;
  std::span<const uint32_t> indptr;    // [num_dst + 1]
  std::span<const uint32_t> src;       // [num_edges]
  std::span<const float> weight;       // [num_edges] or empty
  std::span<const float> self_weight;  // [num_dst] or empty; a destination's own row (GCN)
  uint32_t hop = 0;
  uint32_t relation = 0;
  uint32_t dst_type = 0;
  uint32_t src_type = 0;
  // [num_src], only in a pruned sample (core/history/prune.h): global ids of the source rows, the
  // destinations' first. Empty: the source rows are the first ones of the sample's list.
  std::span<const uint32_t> nodes{};
};

// The pairs of a batch whose items are links: which rows belong together, and which do not. Rows
// are those of seeds. Empty for a batch of nodes.
struct PairsView {
  std::span<const uint32_t> source;       // [P], row of each positive's source
  std::span<const uint32_t> destination;  // [P], row of its destination
  // [P * per_pair], rows of the destinations that positive i is not linked with, from i * per_pair
  // on. In-batch negatives are the destinations of the batch, the same for each positive: per_pair
  // is P, there are P of them, and column i of positive i, the positive itself, is none.
  std::span<const uint32_t> negatives;
  std::span<const uint32_t> items;  // [P], index of each positive among the job's training links
  // Rising positions i * per_pair + column of negatives that are known links of the training graph,
  // where the job wants them left out of the loss.
  std::span<const uint32_t> masked;
  uint32_t per_pair = 0;
  bool in_batch = false;

  bool empty() const { return source.empty(); }
  uint32_t size() const { return static_cast<uint32_t>(source.size()); }
};

// Borrows what its spans view; to be passed by reference.
class Sample {
 public:
  Sample() = default;
  Sample(SampleKind kind, const BatchKey& key) : kind_(kind), key_(key) {}

  // Adds the nodes of the next type, counting from 0. `ranks` holds their hot ranks or is empty.
  void AddNodes(std::span<const uint32_t> nodes, uint32_t num_seeds,
                std::span<const uint32_t> ranks) {
    GNND_CHECK(lists_.size() < kMaxNodeTypes);
    lists_.push_back({nodes, ranks, num_seeds});
  }
  void AddBlock(const BlockView& block) {
    GNND_CHECK(blocks_.size() < kMaxBlocks);
    blocks_.push_back(block);
  }

  SampleKind kind() const { return kind_; }
  const BatchKey& key() const { return key_; }
  uint32_t num_node_types() const { return static_cast<uint32_t>(lists_.size()); }
  uint32_t num_seeds(uint32_t type = 0) const { return lists_[type].num_seeds; }
  std::span<const uint32_t> nodes(uint32_t type = 0) const { return lists_[type].nodes; }
  // [nodes(type).size()]: position in the job's order of hotness, 0xFFFFFFFF = in no cache; or
  // empty.
  std::span<const uint32_t> ranks(uint32_t type = 0) const { return lists_[type].ranks; }

  void SetPairs(const PairsView& pairs) { pairs_ = pairs; }
  // Empty unless the batch's items are links.
  const PairsView& pairs() const { return pairs_; }
  // What the batch counts: its pairs, or its seeds where those are the items themselves.
  uint32_t num_items() const { return pairs_.empty() ? num_seeds() : pairs_.size(); }

  uint32_t num_blocks() const { return static_cast<uint32_t>(blocks_.size()); }
  const BlockView& block(uint32_t index) const { return blocks_[index]; }
  uint32_t num_hops() const { return blocks_.empty() ? 0 : blocks_.back().hop + 1; }
  // Whether there is one type of nodes and one relation, so that block(h) is hop h's.
  bool homogeneous() const { return lists_.size() == 1 && num_blocks() == num_hops(); }

  // The blocks of a relation are prefixes of the rows of its last one (record.h).
  void SetSharesRows(bool shares_rows) { shares_rows_ = shares_rows; }
  bool shares_rows() const { return shares_rows_; }
  // Edges drawn, over all blocks.
  uint64_t num_edges() const {
    uint64_t total = 0;
    for (const BlockView& block : blocks_) {
      if (!shares_rows_ || block.hop + 1 == num_hops()) total += block.src.size();
    }
    return total;
  }

 private:
  struct NodeList {
    std::span<const uint32_t> nodes;
    std::span<const uint32_t> ranks;
    uint32_t num_seeds = 0;
  };

  SampleKind kind_ = SampleKind::kBlocks;
  BatchKey key_{};
  PairsView pairs_{};
  bool shares_rows_ = false;
  std::vector<NodeList> lists_;
  std::vector<BlockView> blocks_;
};

}  // namespace gnnd
