#pragma once

#include <cstdint>
#include <vector>

#include "core/base/cpu.h"
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

// Words 0 to 2 of walkers' blocks.
struct WalkWords {
  uint32_t* low;
  uint32_t* high;
  uint32_t* end;
};

// Kernels work on so many elements at once; arrays are readable and writable up to a multiple of
// it.
inline constexpr uint32_t kWalkLanes = 16;

// Up to so many visits a row comparing all of them beats sorting.
inline constexpr uint32_t kMaxPairVisits = 64;

struct WalkKernels {
  // Draws for `count` walkers, each from a block of a row's stream.
  void (*draw)(const DrawStream& stream, const uint32_t* nodes, const uint32_t* blocks,
               uint32_t count, WalkWords words);
  // VisitCounter::Top for `size` up to kMaxPairVisits, a multiple of kWalkLanes; null: there is
  // none.
  uint32_t (*top)(const uint32_t* visits, uint32_t size, uint32_t most, uint32_t* nodes,
                  float* counts);
};

WalkKernels WalkKernelsFor(InstructionSet set);

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

  uint64_t bytes() const {
    return (visited_.size() + keys_.size()) * sizeof(uint32_t) + sorted_.size() * sizeof(uint64_t);
  }

 private:
  void CountByPairs(uint32_t size);
  void CountBySorting(uint32_t size);

  std::vector<uint32_t> visited_;  // without gaps
  std::vector<uint32_t> keys_;     // at a first visit: visits << 16 | 0xFFFF - place; else 0
  std::vector<uint64_t> sorted_;   // node << 32 | place
};

#if defined(__x86_64__)
void DrawWalksAvx2(const DrawStream& stream, const uint32_t* nodes, const uint32_t* blocks,
                   uint32_t count, WalkWords words);
uint32_t TopVisitsAvx2(const uint32_t* visits, uint32_t size, uint32_t most, uint32_t* nodes,
                       float* counts);
void DrawWalksAvx512(const DrawStream& stream, const uint32_t* nodes, const uint32_t* blocks,
                     uint32_t count, WalkWords words);
uint32_t TopVisitsAvx512(const uint32_t* visits, uint32_t size, uint32_t most, uint32_t* nodes,
                         float* counts);
#endif

}  // namespace gnnd
