#include "core/batch/layout.h"

#include <algorithm>
#include <limits>
#include <string>

namespace gnnd {
namespace {

constexpr uint64_t kElementBytes = 4;  // every section is an array of 32-bit elements

Status CheckLimits(const SampleLimits& limits) {
  const auto invalid = [](const std::string& what) { return Status(Code::kInvalidArgument, what); };
  if (limits.num_nodes == 0) return invalid("the graph has no nodes");
  if (limits.batch_size == 0) return invalid("batch_size must be at least 1");
  if (limits.fanouts.empty() || limits.fanouts.size() > kMaxHops) {
    return invalid("fanouts must name 1 to " + std::to_string(kMaxHops) + " hops, not " +
                   std::to_string(limits.fanouts.size()));
  }
  const PairLimits& pairs = limits.pairs;
  const uint64_t most = std::max(pairs.negatives, pairs.masked);
  if (most > std::numeric_limits<uint32_t>::max()) {
    return invalid("a batch may have " + std::to_string(most) +
                   " negatives; a record counts them in 32 bits");
  }
  for (size_t hop = 0; hop < limits.fanouts.size(); ++hop) {
    const int32_t fanout = limits.fanouts[hop];
    if (fanout != kFullNeighbourhood && (fanout < 1 || fanout > kMaxFanout)) {
      return invalid("fanouts[" + std::to_string(hop) + "] must be -1 or 1 to " +
                     std::to_string(kMaxFanout) + ", not " + std::to_string(fanout));
    }
  }
  return Status::Ok();
}

}  // namespace

uint64_t RecordLayout::AddSection(uint64_t elements) {
  const uint64_t at = slot_bytes_;
  const uint64_t bytes = elements * kElementBytes + kSectionSlackBytes;
  slot_bytes_ += RoundUp(bytes, kSectionAlignment);
  return at;
}

// Computes the bounds of nodes and edges, hop by hop.
Status RecordLayout::AddBounds(const SampleLimits& limits) {
  // Destinations of a hop are distinct, so they cannot exceed the graph's nodes, nor their
  // in-edges, if drawn once, the graph's edges.
  uint64_t nodes = std::min(limits.batch_size, limits.num_nodes);
  uint64_t frontier = nodes;  // rows that the hop draws
  uint64_t shared_edges = 0;  // edges of all hops so far, if they share their rows
  for (uint32_t h = 0; h < num_hops_; ++h) {
    const int32_t fanout = limits.fanouts[h];
    uint64_t edges = limits.num_edges;
    if (fanout != kFullNeighbourhood) {
      const auto f = static_cast<uint32_t>(fanout);
      const uint64_t drawn = frontier * (limits.rows == RowBound::kLabor ? MaxLaborRow(f) : f);
      edges = limits.rows == RowBound::kRepeats ? drawn : std::min(edges, drawn);
    }
    const uint64_t fresh = edges;  // new nodes are sources of this hop's edges
    const uint64_t found = std::min<uint64_t>(limits.num_nodes, nodes + edges);
    if (limits.expansion == Expansion::kNew) {
      shared_edges += edges;
      if (limits.rows != RowBound::kRepeats)
        shared_edges = std::min(shared_edges, limits.num_edges);
      edges = shared_edges;
    }
    if (edges > std::numeric_limits<uint32_t>::max()) {
      return Status(Code::kInvalidArgument, "hop " + std::to_string(h) + " may have " +
                                                std::to_string(edges) +
                                                " edges; a record counts them in 32 bits");
    }
    hops_[h].max_dst = static_cast<uint32_t>(nodes);
    hops_[h].max_edges = static_cast<uint32_t>(edges);
    frontier = limits.expansion == Expansion::kNew ? std::min<uint64_t>(fresh, found) : found;
    nodes = found;
  }
  max_nodes_ = static_cast<uint32_t>(nodes);
  return Status::Ok();
}

void RecordLayout::AddPairs(const PairLimits& limits) {
  if (limits.pairs == 0) return;
  pairs_.ends_at = AddSection(uint64_t{2} * limits.pairs);
  pairs_.items_at = AddSection(limits.pairs);
  if (limits.negatives > 0) pairs_.negatives_at = AddSection(limits.negatives);
  if (limits.masked > 0) pairs_.masked_at = AddSection(limits.masked);
}

void RecordLayout::AddBlock(const SampleLimits& limits, uint32_t max_dst, uint32_t max_edges,
                            HopLayout* hop) {
  hop->indptr_at = AddSection(uint64_t{max_dst} + 1);
  hop->src_at = AddSection(max_edges);
  if (limits.edge_weights) hop->weight_at = AddSection(max_edges);
  if (limits.self_weights) hop->self_weight_at = AddSection(max_dst);
}

Result<RecordLayout> RecordLayout::Of(const SampleLimits& limits) {
  GNND_TRY(CheckLimits(limits));
  RecordLayout layout;
  layout.num_hops_ = static_cast<uint32_t>(limits.fanouts.size());
  GNND_TRY(layout.AddBounds(limits));
  layout.slot_bytes_ = kSectionAlignment;  // the header's page
  layout.nodes_at_ = layout.AddSection(layout.max_nodes_);
  layout.AddPairs(limits.pairs);
  const HopLayout& last = layout.hops_[layout.num_hops_ - 1];
  for (uint32_t h = 0; h < layout.num_hops_; ++h) {
    HopLayout& hop = layout.hops_[h];
    if (limits.expansion == Expansion::kAll) {
      layout.AddBlock(limits, hop.max_dst, hop.max_edges, &hop);
    } else if (h == 0) {
      layout.AddBlock(limits, last.max_dst, last.max_edges, &hop);
    } else {
      const HopLayout& first = layout.hops_[0];
      hop.indptr_at = first.indptr_at;
      hop.src_at = first.src_at;
      hop.weight_at = first.weight_at;
      hop.self_weight_at = first.self_weight_at;
    }
  }
  // Written after the sample (M stage), so it is the last section.
  if (limits.hot_ranks) layout.ranks_at_ = layout.AddSection(layout.max_nodes_);
  return layout;
}

}  // namespace gnnd
