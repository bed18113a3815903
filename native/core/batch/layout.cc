#include "core/batch/layout.h"

#include <algorithm>
#include <limits>
#include <string>

#include "core/batch/record.h"

namespace gnnd {
namespace {

constexpr uint64_t kElementBytes = 4;  // every section is an array of 32-bit elements

Status Invalid(const std::string& what) { return Status(Code::kInvalidArgument, what); }

// " of relation r", where there are several.
std::string OfRelation(const SampleLimits& limits, size_t relation) {
  return limits.relations.size() == 1 ? "" : " of relation " + std::to_string(relation);
}

Status CheckTypes(const SampleLimits& limits) {
  if (limits.types.empty() || limits.types.size() > kMaxNodeTypes) {
    return Invalid("a graph has 1 to " + std::to_string(kMaxNodeTypes) + " types of nodes, not " +
                   std::to_string(limits.types.size()));
  }
  if (limits.relations.empty() || limits.relations.size() > kMaxRelations) {
    return Invalid("a graph has 1 to " + std::to_string(kMaxRelations) + " relations, not " +
                   std::to_string(limits.relations.size()));
  }
  bool seeds = false;
  for (const TypeBound& type : limits.types) {
    if (type.num_nodes == 0) return Invalid("the graph has no nodes");
    seeds = seeds || type.max_seeds > 0;
  }
  return seeds ? Status::Ok() : Invalid("batch_size must be at least 1");
}

Status CheckFanouts(const SampleLimits& limits, size_t relation) {
  const std::vector<int32_t>& fanouts = limits.relations[relation].fanouts;
  const std::string of = OfRelation(limits, relation);
  if (fanouts.empty() || fanouts.size() > kMaxHops) {
    return Invalid("fanouts" + of + " must name 1 to " + std::to_string(kMaxHops) + " hops, not " +
                   std::to_string(fanouts.size()));
  }
  if (fanouts.size() != limits.relations[0].fanouts.size()) {
    return Invalid("fanouts" + of + " must name as many hops as those of relation 0, " +
                   std::to_string(limits.relations[0].fanouts.size()));
  }
  // Along one of several relations a hop may draw nothing.
  const int32_t fewest = limits.relations.size() == 1 ? 1 : 0;
  for (size_t hop = 0; hop < fanouts.size(); ++hop) {
    const int32_t fanout = fanouts[hop];
    if (fanout != kFullNeighbourhood && (fanout < fewest || fanout > kMaxFanout)) {
      return Invalid("fanouts[" + std::to_string(hop) + "]" + of + " must be -1 or " +
                     std::to_string(fewest) + " to " + std::to_string(kMaxFanout) + ", not " +
                     std::to_string(fanout));
    }
  }
  return Status::Ok();
}

Status CheckLimits(const SampleLimits& limits) {
  GNND_TRY(CheckTypes(limits));
  for (size_t r = 0; r < limits.relations.size(); ++r) {
    const RelationBound& relation = limits.relations[r];
    if (std::max(relation.src_type, relation.dst_type) >= limits.types.size()) {
      return Invalid("relation " + std::to_string(r) + " joins a type that is not there");
    }
    GNND_TRY(CheckFanouts(limits, r));
  }
  const PairLimits& pairs = limits.pairs;
  const uint64_t most = std::max(pairs.negatives, pairs.masked);
  if (most > std::numeric_limits<uint32_t>::max()) {
    return Invalid("a batch may have " + std::to_string(most) +
                   " negatives; a record counts them in 32 bits");
  }
  return Status::Ok();
}

// The most edges that a hop draws for `rows` rows.
uint64_t DrawnEdges(const SampleLimits& limits, const RelationBound& relation, int32_t fanout,
                    uint64_t rows) {
  if (fanout == kFullNeighbourhood || relation.num_edges == 0) return relation.num_edges;
  if (fanout == 0) return 0;
  const auto f = static_cast<uint32_t>(fanout);
  const uint64_t drawn = rows * (limits.rows == RowBound::kLabor ? MaxLaborRow(f) : f);
  return limits.rows == RowBound::kRepeats ? drawn : std::min(relation.num_edges, drawn);
}

}  // namespace

uint64_t RecordLayout::AddSection(uint64_t elements) {
  const uint64_t at = slot_bytes_;
  const uint64_t bytes = elements * kElementBytes + kSectionSlackBytes;
  slot_bytes_ += RoundUp(bytes, kSectionAlignment);
  return at;
}

// Computes the blocks and their bounds, hop by hop.
Status RecordLayout::AddBounds(const SampleLimits& limits) {
  // Destinations of a hop are distinct, so they cannot exceed the nodes of their type, nor their
  // in-edges, if drawn once, the relation's edges.
  std::vector<uint64_t> nodes;     // of each type, so far
  std::vector<uint64_t> frontier;  // rows of each type that the hop draws
  for (const TypeBound& type : limits.types) {
    nodes.push_back(std::min(type.max_seeds, type.num_nodes));
    nodes_.push_back({static_cast<uint32_t>(nodes.back()), 0, 0, 0});
  }
  frontier = nodes;
  // Edges of all hops so far, if a relation's blocks share their rows.
  std::vector<uint64_t> shared_edges(limits.relations.size());
  for (uint32_t h = 0; h < num_hops_; ++h) {
    std::vector<uint64_t> fresh(nodes.size());  // new nodes are sources of this hop's edges
    for (uint32_t r = 0; r < limits.relations.size(); ++r) {
      const RelationBound& relation = limits.relations[r];
      if (nodes[relation.dst_type] == 0) continue;
      uint64_t edges =
          DrawnEdges(limits, relation, relation.fanouts[h], frontier[relation.dst_type]);
      fresh[relation.src_type] += edges;
      if (shares_rows_) {
        edges += shared_edges[r];
        if (limits.rows != RowBound::kRepeats) edges = std::min(edges, relation.num_edges);
        shared_edges[r] = edges;
      }
      if (edges > std::numeric_limits<uint32_t>::max()) {
        return Invalid("hop " + std::to_string(h) + OfRelation(limits, r) + " may have " +
                       std::to_string(edges) + " edges; a record counts them in 32 bits");
      }
      BlockLayout block{h, r, relation.dst_type, relation.src_type, relation.fanouts[h]};
      block.max_dst = static_cast<uint32_t>(nodes[relation.dst_type]);
      block.max_edges = static_cast<uint32_t>(edges);
      blocks_.push_back(block);
    }
    for (size_t t = 0; t < nodes.size(); ++t) {
      nodes[t] = std::min<uint64_t>(limits.types[t].num_nodes, nodes[t] + fresh[t]);
      frontier[t] = shares_rows_ ? std::min(fresh[t], nodes[t]) : nodes[t];
    }
  }
  for (size_t t = 0; t < nodes.size(); ++t) {
    nodes_[t].max_nodes = static_cast<uint32_t>(nodes[t]);
  }
  return blocks_.empty() ? Invalid("no relation leads to nodes of the seeds' type") : Status::Ok();
}

void RecordLayout::AddPairs(const PairLimits& limits) {
  if (limits.pairs == 0) return;
  pairs_.ends_at = AddSection(uint64_t{2} * limits.pairs);
  pairs_.items_at = AddSection(limits.pairs);
  if (limits.negatives > 0) pairs_.negatives_at = AddSection(limits.negatives);
  if (limits.masked > 0) pairs_.masked_at = AddSection(limits.masked);
}

void RecordLayout::AddSections(const SampleLimits& limits, BlockLayout* block) {
  block->indptr_at = AddSection(uint64_t{block->max_dst} + 1);
  block->src_at = AddSection(block->max_edges);
  if (limits.edge_weights) block->weight_at = AddSection(block->max_edges);
  if (limits.self_weights) block->self_weight_at = AddSection(block->max_dst);
}

void RecordLayout::AddBlocks(const SampleLimits& limits) {
  // Shared sections are as large as the last hop needs, which has a block of every relation.
  std::vector<const BlockLayout*> whole(limits.relations.size());
  for (BlockLayout& block : blocks_) {
    if (shares_rows_ && block.hop + 1 != num_hops_) continue;
    AddSections(limits, &block);
    whole[block.relation] = &block;
  }
  for (BlockLayout& block : blocks_) {
    const BlockLayout& from = *whole[block.relation];
    if (!shares_rows_ || &block == &from) continue;
    block.indptr_at = from.indptr_at;
    block.src_at = from.src_at;
    block.weight_at = from.weight_at;
    block.self_weight_at = from.self_weight_at;
  }
}

Result<RecordLayout> RecordLayout::Of(const SampleLimits& limits) {
  GNND_TRY(CheckLimits(limits));
  RecordLayout layout;
  layout.num_hops_ = static_cast<uint32_t>(limits.relations[0].fanouts.size());
  layout.shares_rows_ = limits.expansion == Expansion::kNew;
  GNND_TRY(layout.AddBounds(limits));
  const uint64_t header_bytes = HeaderBytes(layout.num_node_types(), layout.num_blocks());
  layout.slot_bytes_ = RoundUp(header_bytes, kSectionAlignment);
  for (NodesLayout& nodes : layout.nodes_) nodes.nodes_at = layout.AddSection(nodes.max_nodes);
  layout.AddPairs(limits.pairs);
  layout.AddBlocks(limits);
  // Written after the sample (M stage), so they are the last sections.
  if (limits.hot_ranks) {
    for (NodesLayout& nodes : layout.nodes_) nodes.ranks_at = layout.AddSection(nodes.max_nodes);
  }
  return layout;
}

}  // namespace gnnd
