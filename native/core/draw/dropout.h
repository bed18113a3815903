#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/hd.h"
#include "core/draw/stream.h"

// Keyed dropout. Whether an element survives depends on (random seed, epoch, batch, layer, node,
// the element's number) alone: element i of a node takes word i % 4 of block i / 4 of the node's
// row, and survives when UnitDraw(word) >= p. Frozen, because it decides bits. A node's elements
// are
//
//   a hidden layer's mask (Purpose::kDropout): its columns;
//   attention's coefficients (Purpose::kAttentionDropout): position * heads + head of a
//   destination, position 0 being the destination itself and k + 1 its k-th edge. There may be more
//   than 2^18 of them, so blocks go over pages (philox.h).

namespace gnnd {

// The key of the masks of one layer in one batch. Layer l masks the input of layer l: 0 is for
// input features, l >= 1 for the output of layer l - 1. Attention's masks lie within layer l.
struct DropoutKey {
  uint64_t random_seed = 0;
  uint32_t epoch = 0;
  uint32_t batch = 0;
  uint32_t layer = 0;
};

GNND_HD DrawStream DropoutStream(const DropoutKey& key, Purpose purpose) {
  return DrawStreamOf(BatchKey{key.random_seed, key.epoch, key.batch}, key.layer, purpose);
}

// Threshold for dropout probability `p` in [0, 1): a word that is not below it survives, which is
// exactly UnitDraw(word) >= p. At most 2^32 - 1; at 0 all survive.
GNND_HD uint64_t DropoutThreshold(float p) {
  return static_cast<uint64_t>(std::ceil(static_cast<double>(p) * 0x1.0p24)) << 8;
}

}  // namespace gnnd
