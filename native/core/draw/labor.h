#pragma once

#include <cstdint>

#include "core/base/hd.h"
#include "core/draw/batch_key.h"
#include "core/draw/philox.h"

// LABOR-0, layer-neighbour sampling (Balin and Catalyurek, NeurIPS 2023, section 3.2 with uniform
// importance): each node t has one number r_t for the whole hop, and row s of degree d takes its
// neighbour t iff r_t <= min(1, f / d). Each row sees what Poisson sampling would give it, f
// neighbours on average; but rows agree on which, so a hop finds fewer nodes. Frozen, because it
// decides bits:
//
//   r_t is a 32-bit number; a row with d > f takes t iff r_t < floor(f * 2^32 / d), in row order,
//   up to MaxLaborRow(f); a row with d <= f takes all. A neighbour listed twice is taken twice.
//
//   Dependent minibatches: a node keeps its number for `window` batches and finds another then, and
//   nodes do so at different times, 1 / window of them with each batch, so that consecutive batches
//   find many of the same nodes and no two that are `window` apart share a number. With
//   w = floor(batch / window) and c = batch mod window, node t has the number of window w + 1
//   already if s_t < floor(c * 2^32 / window), else that of window w, where
//   s_t = (t ^ k2) * 0x9E3779B1 and k2 is word 0 of Philox (Purpose::kLabor, the hop, node 0, block
//   1, batch 0). Window 1 makes batches independent.
//
//   (k0, k1) are words 0 and 1 of Philox (Purpose::kLabor, the hop, node 0, block 0), whose batch
//   is the window's number.
//
//   x = t ^ k0;  x ^= x >> 16;  x *= 0x7FEB352D;  x ^= x >> 15;  x += k1;
//   x *= 0x846CA68B;  x ^= x >> 16;  x *= 0x9E3779B1;  r_t = x ^ (x >> 15)
//
// One number per neighbour looked at makes a generator of Philox's cost the bottleneck here, and
// only here; with two multiplications instead of three consecutive ids show.
//
// Every edge of a row has weight 1 / min(1, f / d), rounded to float32 once from float64 d / f. The
// weights are equal within a row, so a weighted mean (the Hajek estimator) is the plain mean of the
// neighbours taken; given that there are any, it is an unbiased estimate of the mean over the whole
// row. Weighted sums estimate the whole row's sum without bias (Horvitz and Thompson).

namespace gnnd {

// Key of the numbers of one window.
struct LaborKey {
  uint32_t k0;
  uint32_t k1;
};

// Keys of the numbers of one batch.
struct LaborKeys {
  LaborKey now;           // keys of the batch's window
  LaborKey next;          // keys of the next window
  uint32_t switch_key;    // k2
  uint32_t switch_below;  // nodes with s_t below it have the next window's number; 0 = none has
};

// `number` is the number of the window.
GNND_HD LaborKey LaborKeyOf(const BatchKey& key, uint32_t hop, uint32_t number,
                            uint32_t relation = 0) {
  const PhiloxWords words = Philox(RelationKey(KeyOf(key.random_seed), relation),
                                   CounterOf(Purpose::kLabor, key.epoch, number, hop, 0, 0));
  return {words.word[0], words.word[1]};
}

// Numbers for edges of `relation`; a graph with one kind of edge has relation 0.
GNND_HD LaborKeys LaborKeysOf(const BatchKey& key, uint32_t hop, uint32_t window,
                              uint32_t relation = 0) {
  const uint32_t number = key.batch / window;
  const uint64_t age = key.batch % window;
  const PhiloxWords switches = Philox(RelationKey(KeyOf(key.random_seed), relation),
                                      CounterOf(Purpose::kLabor, key.epoch, 0, hop, 0, 1));
  return {LaborKeyOf(key, hop, number, relation), LaborKeyOf(key, hop, number + 1, relation),
          switches.word[0], static_cast<uint32_t>((age << 32) / window)};
}

inline constexpr uint32_t kLaborMul0 = 0x7FEB352DU;
inline constexpr uint32_t kLaborMul1 = 0x846CA68BU;
inline constexpr uint32_t kLaborMul2 = 0x9E3779B1U;

// s_t, which decides when a node's number changes within a window.
GNND_HD uint32_t LaborSwitch(uint32_t switch_key, uint32_t node) {
  return (node ^ switch_key) * kLaborMul2;
}

GNND_HD uint32_t LaborNumber(LaborKey key, uint32_t node) {
  uint32_t x = node ^ key.k0;
  x = (x ^ x >> 16) * kLaborMul0;
  x = ((x ^ x >> 15) + key.k1) * kLaborMul1;
  x = (x ^ x >> 16) * kLaborMul2;
  return x ^ x >> 15;
}

GNND_HD uint32_t LaborNumber(const LaborKeys& keys, uint32_t node) {
  const bool switched = LaborSwitch(keys.switch_key, node) < keys.switch_below;
  return LaborNumber(switched ? keys.next : keys.now, node);
}

// REQUIRES: degree > fanout.
GNND_HD uint32_t LaborThreshold(uint32_t fanout, uint64_t degree) {
  return static_cast<uint32_t>((uint64_t{fanout} << 32) / degree);
}

// Most neighbours that a row takes. Their number is random with mean min(degree, fanout); it
// exceeds this bound with a chance below 1e-60 (Chernoff), and the row then ends there.
GNND_HD constexpr uint32_t MaxLaborRow(uint32_t fanout) { return 4 * fanout + 64; }

GNND_HD float LaborWeight(uint32_t fanout, uint64_t degree) {
  if (degree <= fanout) return 1;
  return static_cast<float>(static_cast<double>(degree) / fanout);
}

}  // namespace gnnd
