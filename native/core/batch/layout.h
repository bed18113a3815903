#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/mapping.h"
#include "core/base/status.h"
#include "core/batch/sample.h"
#include "core/draw/labor.h"

// Where each section of a job's records lies (docs/formats/record.md). It is computed once per job
// from the bounds of its largest possible sample; every process that knows the limits computes the
// same layout. Its size is virtual memory: a record touches only the pages that it fills.

namespace gnnd {

// The fanout of a hop that takes every in-neighbour.
inline constexpr int32_t kFullNeighbourhood = -1;

// Largest finite fanout: a group of 16 rows is in flight at once and must stay small.
inline constexpr int32_t kMaxFanout = 4096;

// The nodes that a hop expands.
enum class Expansion : uint32_t {
  kAll = 1,  // every node so far, drawn anew at each hop (as DGL does)
  kNew = 2,  // nodes that the last hop found; each node has one row in a sample (as PyG does)
};

// The bound on the edges of a row, beside its degree.
enum class RowBound : uint32_t {
  kFanout,   // at most fanout edges of the graph, each once
  kRepeats,  // at most fanout, not bounded by the graph's edges
  kLabor,    // at most MaxLaborRow(fanout) edges of the graph, each once
};

// The bounds of the pairs of a batch of links; all 0 for batches of nodes.
struct PairLimits {
  uint32_t pairs = 0;
  uint64_t negatives = 0;  // that the record lists, of all pairs together
  uint64_t masked = 0;     // of these or of the batch's other ends
};

// What bounds the nodes of one type in a sample.
struct TypeBound {
  uint32_t num_nodes = 0;  // in the graph
  uint32_t max_seeds = 0;  // in a batch; 0 = seeds are of other types
};

// What bounds the edges of one relation in a sample.
struct RelationBound {
  uint32_t src_type = 0;
  uint32_t dst_type = 0;
  uint64_t num_edges = 0;        // in the graph
  std::vector<int32_t> fanouts;  // hop 0 (at the seeds) first; kFullNeighbourhood takes all
};

// The bounds of a sample.
struct SampleLimits {
  std::vector<TypeBound> types;
  std::vector<RelationBound> relations;  // all with as many hops
  bool edge_weights = false;             // the record has a section of edge weights
  bool self_weights = false;  // the record has a section of self weights; only with edge weights
  RowBound rows = RowBound::kFanout;
  Expansion expansion = Expansion::kAll;
  bool hot_ranks = false;  // the record has a section of the input nodes' hot ranks
  PairLimits pairs{};

  // Those of a graph of one type and one relation.
  static SampleLimits Of(uint32_t num_nodes, uint64_t num_edges, uint32_t batch_size,
                         std::vector<int32_t> fanouts) {
    SampleLimits limits;
    limits.types = {{num_nodes, batch_size}};
    limits.relations = {{0, 0, num_edges, std::move(fanouts)}};
    return limits;
  }
};

// What one hop draws along one relation: bounds and section offsets (bytes from the record's
// start). With Expansion::kNew all blocks of a relation share their sections (record.h).
struct BlockLayout {
  uint32_t hop = 0;
  uint32_t relation = 0;
  uint32_t dst_type = 0;
  uint32_t src_type = 0;
  int32_t fanout = 0;
  uint32_t max_dst = 0;
  uint32_t max_edges = 0;
  uint64_t indptr_at = 0;
  uint64_t src_at = 0;
  uint64_t weight_at = 0;       // 0 without edge weights
  uint64_t self_weight_at = 0;  // 0 without self weights
};

// Bounds and section offsets of the nodes of one type.
struct NodesLayout {
  uint32_t max_seeds = 0;
  uint32_t max_nodes = 0;
  uint64_t nodes_at = 0;
  uint64_t ranks_at = 0;  // 0 without hot ranks
};

// Section offsets of a batch's pairs; 0 where the record has no such section.
struct PairLayout {
  uint64_t ends_at = 0;
  uint64_t items_at = 0;
  uint64_t negatives_at = 0;
  uint64_t masked_at = 0;
};

class RecordLayout {
 public:
  // Sections start on page boundaries, so that an untouched one costs no memory.
  static constexpr uint64_t kSectionAlignment = kPageBytes;
  // Every section may be overrun by this much, so that writers need no special case at its end.
  static constexpr uint64_t kSectionSlackBytes = 64;

  // kInvalidArgument names the impossible limit: no nodes or seeds, seeds to which no relation
  // leads, more than kMaxNodeTypes or kMaxRelations, a number of hops outside 1..kMaxHops, a fanout
  // that is not -1, 1..kMaxFanout or, of several relations, 0, a bound of more than 32 bits.
  static Result<RecordLayout> Of(const SampleLimits& limits);

  uint64_t slot_bytes() const { return slot_bytes_; }
  uint32_t num_hops() const { return num_hops_; }
  uint32_t num_node_types() const { return static_cast<uint32_t>(nodes_.size()); }
  const NodesLayout& nodes(uint32_t type = 0) const { return nodes_[type]; }
  // By hop, within a hop by relation: every relation whose destinations the hop can reach. A graph
  // of one type and one relation has one block per hop.
  uint32_t num_blocks() const { return static_cast<uint32_t>(blocks_.size()); }
  const BlockLayout& block(uint32_t index) const { return blocks_[index]; }
  const PairLayout& pairs() const { return pairs_; }
  bool shares_rows() const { return shares_rows_; }

 private:
  uint64_t AddSection(uint64_t elements);
  Status AddBounds(const SampleLimits& limits);
  void AddPairs(const PairLimits& limits);
  void AddSections(const SampleLimits& limits, BlockLayout* block);
  void AddBlocks(const SampleLimits& limits);

  std::vector<NodesLayout> nodes_;
  std::vector<BlockLayout> blocks_;
  PairLayout pairs_{};
  uint32_t num_hops_ = 0;
  bool shares_rows_ = false;
  uint64_t slot_bytes_ = 0;
};

}  // namespace gnnd
