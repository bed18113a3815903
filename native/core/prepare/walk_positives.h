#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "core/prepare/message_files.h"

// Positives without labels: pairs of nodes that random walks visit close to each other (Perozzi et
// al., DeepWalk, KDD 2014; Hamilton et al., GraphSAGE, NeurIPS 2017). Frozen, because it decides
// the bits of models:
//
//   From each node go `per_node` walks of `length` steps. Step s of walk w takes the words of block
//   w * length + s (core/draw/walk.h) of the node's stream of Purpose::kWalk in batch 0 of epoch
//   kLinkSplitEpoch, hop 0. The next node is the in-neighbour of the present one at the position of
//   words 0 and 1, so that parallel edges count as often as they are there, and weights do not. A
//   node without in-neighbours ends a walk.
//
//   Nodes at positions i < j of a walk, the start being at 0, are a pair if j - i <= window and
//   they differ. Walks go against the edges, so that the node at j is its source and that at i its
//   destination: a pair of one step is an edge. A pair that comes again is another item.

namespace gnnd {

struct PositiveWalks {
  uint32_t per_node = 0;  // 0: no walks, and nothing else is read
  uint32_t length = 1;    // steps
  uint32_t window = 1;    // steps between the nodes of a pair, at most; not above `length`
  uint64_t random_seed = 0;
};

// Most pairs of the walks from one node.
uint64_t MostWalkPairs(const PositiveWalks& walks);

// Pairs that are held while they are put in order, 8 bytes each.
inline constexpr uint64_t kHeldPairs = uint64_t{1} << 23;

// Writes the pairs as links_train.npy of `folder`, uint32 [pairs, 2], by (destination, source), and
// answers how many there are. Takes 8 bytes of disk each, as many again while more than `held` are
// sorted (key_sorter.h), and memory for those. kInvalidArgument if there are none, or may be 2^32;
// kIo, kDiskFull.
Result<uint64_t> WriteWalkPositives(const Edges& edges, const PositiveWalks& walks, uint64_t held,
                                    const std::string& folder);

}  // namespace gnnd
