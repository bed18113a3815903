#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/draw/alias.h"

namespace gnnd {

// The edges of one relation in compressed sparse column form: row v lists the in-neighbours of node
// v of the destination type, by their ids within the source type. Borrows its memory. Invariants:
// indptr has num_nodes + 1 entries, starts at 0, is monotone and ends at indices.size(); every
// index is a node of the source type. Rows may be empty, hold self-loops and repeat a neighbour.
// `alias` and `edge_weight` have one entry per index, or none at all; `favoured` has one byte per
// node or none: bit h says that hop h favours the node (core/feature/favoured.h).
struct TopologyView {
  std::span<const uint64_t> indptr;
  std::span<const uint32_t> indices;
  std::span<const AliasEntry> alias{};
  std::span<const float> edge_weight{};
  std::span<const uint8_t> favoured{};

  // Of the destination type.
  uint32_t num_nodes() const { return static_cast<uint32_t>(indptr.size() - 1); }
  uint64_t num_edges() const { return indices.size(); }
  uint64_t degree(uint32_t node) const { return indptr[node + 1] - indptr[node]; }
};

struct RelationView {
  uint32_t src_type = 0;
  uint32_t dst_type = 0;
  TopologyView rows;
};

// Types of nodes and the relations between them. Borrows its memory. Invariants: every type is
// below num_nodes.size(), and a relation has a row for each node of its destination type.
struct GraphView {
  std::vector<uint32_t> num_nodes;  // of each type; ids are local to a type
  std::vector<RelationView> relations;

  // A graph of one type and one relation.
  static GraphView Of(const TopologyView& topology) {
    return {{topology.num_nodes()}, {{0, 0, topology}}};
  }
};

}  // namespace gnnd
