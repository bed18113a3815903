#pragma once

#include <cstdint>
#include <vector>

#include "core/draw/floyd.h"
#include "core/vec/dispatch.h"

// Draws the positions in each row (core/draw/floyd.h), in two ways with one result: many rows at
// once, a vector lane per row, for small fanouts and degrees; row by row for all others.

namespace gnnd {

// Rows that are drawn together and travel through the sampler as one group.
inline constexpr uint32_t kGroupRows = 16;

// Largest fanout drawn by groups, whose work per row grows with the fanout's square.
inline constexpr uint32_t kMaxGroupFanout = 32;

// Draws per row, with the largest fanout, from an alias table by groups (weighted.h).
inline constexpr uint32_t kMaxAliasDraws = kMaxGroupFanout + kMaxGroupFanout / 2;

// Draws by groups. In: node ids and degrees (below kTwoWordDegree) of kGroupRows rows. Out: the
// result for draw j of row r at j * kGroupRows + r. All arrays are 64-byte aligned.
struct PickLoops {
  // Pick j, a position in the row, for fanout <= kMaxGroupFanout; undefined for j >= degree.
  void (*group)(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
                uint32_t fanout, uint32_t* picks);
  // The same with replacement; undefined for a row of degree 0.
  void (*group_replace)(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
                        uint32_t fanout, uint32_t* picks);
  // Both once more for rows of trees, each with the key of its tree (core/draw/tree.h).
  void (*tree_group)(const DrawStream& stream, const uint32_t* trees, const uint32_t* nodes,
                     const uint32_t* degrees, uint32_t fanout, uint32_t* picks);
  void (*tree_group_replace)(const DrawStream& stream, const uint32_t* trees, const uint32_t* nodes,
                             const uint32_t* degrees, uint32_t fanout, uint32_t* picks);
  // Draws by edge weight: slots, and the words to compare with their thresholds (weighted.h).
  void (*draw_alias)(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
                     uint32_t draws, uint32_t* slots, uint32_t* words);
  // Sets bit r of repeats[j] if pick j of row r equals an earlier pick of the row.
  void (*find_repeats)(const uint32_t* picks, uint32_t draws, uint16_t* repeats);
};
GNND_DECLARE_LOOPS(PickLoops, kPickLoops);

// Draws row by row, any degree and fanout.
class RowPicker {
 public:
  explicit RowPicker(uint32_t max_fanout);

  // Writes `fanout` positions of a row with degree > fanout.
  void Pick(const DrawStream& stream, uint32_t node, uint64_t degree, uint32_t fanout,
            uint64_t* picks);
  // Writes `fanout` positions of a row with degree > 0, with replacement.
  static void PickWithReplacement(const DrawStream& stream, uint32_t node, uint64_t degree,
                                  uint32_t fanout, uint64_t* picks);
  uint64_t bytes() const { return taken_.size() * sizeof(uint64_t); }

 private:
  bool Take(uint64_t position);

  std::vector<uint64_t> taken_;  // open addressing, at most half full; empty between rows
  uint32_t shift_;
};

}  // namespace gnnd
