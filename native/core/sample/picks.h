#pragma once

#include <cstdint>
#include <vector>

#include "core/draw/floyd.h"
#include "core/vec/dispatch.h"

// Which positions of its row each node draws (core/draw/floyd.h), by two roads with one result:
// many rows at once, a vector lane per row, for small fanouts and degrees; row by row for all
// others.

namespace gnnd {

// Rows that are drawn together and travel through the sampler as one group.
inline constexpr uint32_t kGroupRows = 16;

// Largest fanout of the road by groups; its work per row grows with the fanout's square.
inline constexpr uint32_t kMaxGroupFanout = 32;

// Draws of a row by group with replacement from an alias table (weighted.h): of the largest fanout.
inline constexpr uint32_t kMaxAliasDraws = kMaxGroupFanout + kMaxGroupFanout / 2;

// The road by groups. In: node ids and degrees (below kTwoWordDegree) of kGroupRows rows. What goes
// out for draw j of row r stands at j * kGroupRows + r. All arrays 64-byte aligned.
struct PickLoops {
  // Pick j, a position in the row, for fanout <= kMaxGroupFanout; entries j >= degree mean nothing.
  void (*group)(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
                uint32_t fanout, uint32_t* picks);
  // The same with replacement; all entries of a row of degree 0 mean nothing.
  void (*group_replace)(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
                        uint32_t fanout, uint32_t* picks);
  // By edge weight: slots and the words that go against their thresholds (weighted.h).
  void (*draw_alias)(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
                     uint32_t draws, uint32_t* slots, uint32_t* words);
  // Bit r of repeats[j]: pick j of row r is an earlier pick of the row, too.
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
