#pragma once

#include <cstdint>

#include "core/base/hd.h"
#include "core/draw/stream.h"

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

// The block of a row's stream for step s of walk w.
GNND_HD uint32_t WalkBlock(uint32_t walk, uint32_t length, uint32_t step) {
  return walk * length + step;
}

// The position of a step's next node in the row of a node with `degree` in-neighbours.
GNND_HD uint64_t WalkPosition(uint32_t low, uint32_t high, uint64_t degree) {
  return WideBoundedDraw(low, high, degree);
}

// A word 2 below this threshold ends a walk.
GNND_HD uint32_t RestartThreshold(double restart_prob) {
  return static_cast<uint32_t>(restart_prob * 0x1p32);
}

}  // namespace gnnd
