#pragma once

#include <cstdint>
#include <span>

#include "core/draw/alias.h"

namespace gnnd {

// A graph in compressed sparse column form: row v lists the in-neighbours of node v.
// Borrows its memory. Invariants: indptr has num_nodes + 1 entries, starts at 0, is monotone and
// ends at indices.size(); every index is below num_nodes. Rows may be empty, hold self-loops and
// repeat a neighbour. `alias` and `edge_weight` have one entry per index, or none at all;
// `favoured` has one byte per node or none: bit h says that hop h favours the node
// (core/feature/favoured.h).
struct TopologyView {
  std::span<const uint64_t> indptr;
  std::span<const uint32_t> indices;
  std::span<const AliasEntry> alias{};
  std::span<const float> edge_weight{};
  std::span<const uint8_t> favoured{};

  uint32_t num_nodes() const { return static_cast<uint32_t>(indptr.size() - 1); }
  uint64_t num_edges() const { return indices.size(); }
  uint64_t degree(uint32_t node) const { return indptr[node + 1] - indptr[node]; }
};

}  // namespace gnnd
