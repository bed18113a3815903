#pragma once

#include <cstdint>
#include <vector>

#include "core/draw/walk.h"
#include "core/sample/options.h"
#include "core/vec/dispatch.h"

namespace gnnd {

// An id that no node has (dataset.h).
inline constexpr uint32_t kNoVisit = 0xFFFFFFFF;

// Words 0 to 2 of the walkers' blocks.
struct WalkWords {
  uint32_t* low;
  uint32_t* high;
  uint32_t* end;
};

// Elements that loops process at once; arrays are readable and writable up to a multiple of it.
inline constexpr uint32_t kWalkLanes = 16;

// Up to this many visits per row, comparing all pairs is faster than sorting.
inline constexpr uint32_t kMaxPairVisits = 64;

// Visits are ordered by keys: number << 16 | kVisitPlaceMask - place of the first visit.
inline constexpr uint32_t kVisitPlaceMask = 0xFFFF;

struct WalkLoops {
  // Draws for `count` walkers, each from a block of a row's stream.
  void (*draw)(const DrawStream& stream, const uint32_t* nodes, const uint32_t* blocks,
               uint32_t count, WalkWords words);
  // VisitCounter::Top for `size` up to kMaxPairVisits, a multiple of kWalkLanes.
  uint32_t (*top)(const uint32_t* visits, uint32_t size, uint32_t most, uint32_t* nodes,
                  float* counts);
};
GNND_DECLARE_LOOPS(WalkLoops, kWalkLoops);

// Finds the most visited nodes of a row.
class VisitCounter {
 public:
  explicit VisitCounter(uint32_t max_visits);

  // `visits` are in the order of (w, s), kNoVisit where there was none. Writes up to `most` nodes
  // and their numbers of visits, and returns how many nodes they are.
  uint32_t Top(const uint32_t* visits, uint32_t size, uint32_t most, uint32_t* nodes,
               float* counts);

  uint64_t bytes() const {
    return (visited_.size() + keys_.size()) * sizeof(uint32_t) + sorted_.size() * sizeof(uint64_t);
  }

 private:
  void CountByPairs(uint32_t size);
  void CountBySorting(uint32_t size);

  std::vector<uint32_t> visited_;  // without gaps
  std::vector<uint32_t> keys_;     // at a node's first visit its key, else 0
  std::vector<uint64_t> sorted_;   // node << 32 | place
};

}  // namespace gnnd
