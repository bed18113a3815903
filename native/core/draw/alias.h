#pragma once

#include <cstdint>

#include "core/base/hd.h"
#include "core/draw/stream.h"

// Draws neighbours in proportion to edge weights, from the rows' alias tables (core/graph/alias.h).
// Frozen, because it decides the bits of samples. d is a row's degree, f the fanout.
//
//   Draw j of a row takes two words of its stream (Purpose::kWeighted), 2 j and 2 j + 1: the slot
//   is the high half of the first times d, the second goes against the slot's threshold. From
//   degree kTwoWordDegree on it takes four, 4 j to 4 j + 3: the first two are the slot's 64-bit
//   number (low, high), the third goes against the threshold, the last is not used.
//
//   With replacement a row is draws 0 to f - 1. A row without weight is empty.
//
//   Without, a row of d <= f is all its entries of weight above 0, in row order. A longer one is
//   the first f different positions of draws 0 to 5 ceil(1.5 f) - 1, in the order drawn. Where that
//   gives fewer, the missing ones are drawn by scanning: the table gives entry i the mass own(i) +
//   sum of 2^32 - threshold over the slots whose alias it is, where own is 2^32 for a full slot,
//   else its threshold. R is the mass of all positions not yet picked. Missing pick m is the first
//   position at which the mass, added up in row order over those not picked, exceeds the high half
//   of R times the 64-bit number of words 2 m and 2 m + 1 from block kScanBlock on. At R = 0
//   nothing of weight is left, and the row ends.
//
// So each pick falls on a position with probability weight / weight of all not yet picked
// (successive sampling), as first differing draws and as scans alike.

namespace gnnd {

// A slot of a row's alias table (core/graph/alias.h).
struct AliasEntry {
  uint32_t threshold;
  uint32_t alias;  // a position in the row
};

inline constexpr uint32_t kScanBlock = 32768;

// Draws with which a row without replacement starts; it makes at most kMaxWeightedRounds times as
// many.
GNND_HD constexpr uint32_t WeightedCandidates(uint32_t fanout) { return fanout + (fanout + 1) / 2; }
inline constexpr uint32_t kMaxWeightedRounds = 5;

// Whether an entry belongs to a row without weight; `slot` is its position.
GNND_HD bool IsWeightless(AliasEntry entry, uint32_t slot) {
  return entry.threshold == 0 && entry.alias == slot;
}

// The slot itself where word < threshold, else the alias. Without a branch, because no predictor
// could guess it.
GNND_HD uint32_t ChosenOf(AliasEntry entry, uint32_t slot, uint32_t word) {
  const uint32_t takes_alias = uint32_t{0} - static_cast<uint32_t>(word >= entry.threshold);
  return slot ^ ((slot ^ entry.alias) & takes_alias);
}

struct AliasDraw {
  uint64_t slot;
  uint32_t word;  // to compare with the slot's threshold
};

// Draw j of a row.
GNND_HD AliasDraw AliasDrawAt(const DrawStream& stream, uint32_t node, uint64_t degree,
                              uint32_t j) {
  if (degree < kTwoWordDegree) {
    const PhiloxWords words = RowWords(stream, node, j / 2);
    const uint32_t at = j % 2 * 2;
    return {BoundedDraw(WordAt(words, at), static_cast<uint32_t>(degree)), WordAt(words, at + 1)};
  }
  const PhiloxWords words = RowWords(stream, node, j);
  return {WideBoundedDraw(words.word[0], words.word[1], degree), words.word[2]};
}

}  // namespace gnnd
