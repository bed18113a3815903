#include "core/kernels/rank_loops.h"

#include "core/vec/vec.h"

namespace gnnd::GNND_SET {
namespace {

constexpr uint32_t kTogether = 4;  // vectors of links whose counts stay in registers

// A comparison that holds is a lane of ones, which is -1.
GNND_VEC void Count(const F32x16& scores, const F32x16& own, U32x16* greater, U32x16* equal) {
  GNND_PARTS greater->part[p] -= reinterpret_cast<U32x16::Part>(scores.part[p] > own.part[p]);
  GNND_PARTS equal->part[p] -= reinterpret_cast<U32x16::Part>(scores.part[p] == own.part[p]);
}

template <uint32_t kVectors>
GNND_VEC void CompareColumns(const ComparedBlock& block, uint32_t first) {
  F32x16 own[kVectors];
  U32x16 greater[kVectors];
  U32x16 equal[kVectors];
#pragma GCC unroll 4
  for (uint32_t v = 0; v < kVectors; ++v) {
    own[v] = Load(block.own + first + v * kLanes);
    greater[v] = Broadcast(uint32_t{0});
    equal[v] = Broadcast(uint32_t{0});
  }
  const float* row = block.scores + first;
  for (uint64_t node = 0; node < block.nodes; ++node, row += block.links) {
#pragma GCC unroll 4
    for (uint32_t v = 0; v < kVectors; ++v) {
      Count(Load(row + v * kLanes), own[v], &greater[v], &equal[v]);
    }
  }
#pragma GCC unroll 4
  for (uint32_t v = 0; v < kVectors; ++v) {
    Store(block.greater + first + v * kLanes, greater[v]);
    Store(block.equal + first + v * kLanes, equal[v]);
  }
}

void Compare(const ComparedBlock& block, uint32_t begin, uint32_t end) {
  uint32_t link = begin;
  for (; link + kTogether * kLanes <= end; link += kTogether * kLanes) {
    CompareColumns<kTogether>(block, link);
  }
  for (; link + kLanes <= end; link += kLanes) CompareColumns<1>(block, link);
  for (; link < end; ++link) {
    uint32_t greater = 0;
    uint32_t equal = 0;
    for (uint64_t node = 0; node < block.nodes; ++node) {
      const float score = block.scores[node * block.links + link];
      greater += score > block.own[link] ? 1U : 0U;
      equal += score == block.own[link] ? 1U : 0U;
    }
    block.greater[link] = greater;
    block.equal[link] = equal;
  }
}

}  // namespace

const RankLoops kRankLoops = {Compare};

}  // namespace gnnd::GNND_SET
