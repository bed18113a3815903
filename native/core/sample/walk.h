#pragma once

#include <cstdint>
#include <vector>

#include "core/base/hd.h"
#include "core/sample/draw.h"
#include "core/sample/options.h"

// Random walks with restart and the nodes they visit most (Ying et al., PinSAGE, KDD 2018, section
// 3.3; semantics as GNNLab's sampler). Frozen, because it decides bits:
//
//   From the node of a row go `walks` walks of at most `length` steps. Step s of walk w takes the
//   four words of block w * length + s of the row's stream (Purpose::kWalk). The next node is a
//   uniform in-neighbour of the present one, at the high half of its degree times the 64-bit number
//   of words 0 (low) and 1 (high); that is a visit. Then the walk ends if word 2 is below
//   floor(restart_prob * 2^32). A node without in-neighbours ends a walk, too, without a visit.
//
//   The row's neighbours are the `fanout` nodes visited most, by falling number of visits, nodes of
//   equally many by their first visit, in the order of (w, s). An edge's weight is its number of
//   visits. The row's own node is a neighbour like any other when walks come back to it.

namespace gnnd {

// No node has this id (dataset.h).
inline constexpr uint32_t kNoVisit = 0xFFFFFFFF;

struct WalkStep {
  uint64_t position;  // of the next node in the row of the present one
  uint32_t end_word;
};

GNND_HD WalkStep WalkStepOf(const DrawStream& stream, uint32_t node, uint32_t block,
                            uint64_t degree) {
  const PhiloxWords words = RowWords(stream, node, block);
  return {WideBoundedDraw(words.word[0], words.word[1], degree), words.word[2]};
}

inline uint32_t RestartThreshold(double restart_prob) {
  return static_cast<uint32_t>(restart_prob * 0x1p32);
}

// Finds the most visited nodes of a row.
class VisitCounter {
 public:
  explicit VisitCounter(uint32_t max_visits);

  // Visits in the order of (w, s), kNoVisit where there was none. Writes up to `most` nodes and
  // their numbers of visits, returns how many.
  uint32_t Top(const uint32_t* visits, uint32_t size, uint32_t most, uint32_t* nodes,
               float* counts);

  uint64_t bytes() const { return 2 * keys_.size() * sizeof(uint32_t); }

 private:
  void CountByPairs(uint32_t size);
  void CountBySorting(uint32_t size);

  std::vector<uint32_t> visited_;  // without gaps
  std::vector<uint32_t> keys_;     // at a first visit: visits << 16 | 0xFFFF - place; else 0
  std::vector<uint64_t> sorted_;   // node << 32 | place
};

}  // namespace gnnd
