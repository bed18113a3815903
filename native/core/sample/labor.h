#pragma once

#include <cstdint>

#include "core/base/cpu.h"
#include "core/base/hd.h"
#include "core/base/philox.h"
#include "core/sample/record.h"

// LABOR-0, layer-neighbour sampling (Balin and Catalyurek, NeurIPS 2023, section 3.2 with uniform
// importance): each node t has one number r_t for the whole hop, and row s of degree d takes its
// neighbour t iff r_t <= min(1, f / d). Each row sees what Poisson sampling would give it, f
// neighbours on average; but rows agree on which, so a hop finds fewer nodes. Frozen, because it
// decides bits:
//
//   r_t is a 32-bit number; a row with d > f takes t iff r_t < floor(f * 2^32 / d), in row order,
//   up to MaxLaborRow(f); a row with d <= f takes all. A neighbour listed twice is taken twice.
//
//   (k0, k1) are words 0 and 1 of Philox (Purpose::kLabor, the hop, node 0, block 0), whose batch
//   is floor(batch / window): the batches of a window share their numbers, so that they find many
//   of the same nodes (dependent minibatches); window 1 makes batches independent.
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

struct LaborKey {
  uint32_t k0;
  uint32_t k1;
};

GNND_HD LaborKey LaborKeyOf(const BatchKey& key, uint32_t hop, uint32_t window) {
  const PhiloxWords words = Philox(
      KeyOf(key.random_seed), CounterOf(Purpose::kLabor, key.epoch, key.batch / window, hop, 0, 0));
  return {words.word[0], words.word[1]};
}

GNND_HD uint32_t LaborNumber(LaborKey key, uint32_t node) {
  uint32_t x = node ^ key.k0;
  x = (x ^ x >> 16) * 0x7FEB352DU;
  x = ((x ^ x >> 15) + key.k1) * 0x846CA68BU;
  x = (x ^ x >> 16) * 0x9E3779B1U;
  return x ^ x >> 15;
}

// REQUIRES: degree > fanout.
GNND_HD uint32_t LaborThreshold(uint32_t fanout, uint64_t degree) {
  return static_cast<uint32_t>((uint64_t{fanout} << 32) / degree);
}

GNND_HD float LaborWeight(uint32_t fanout, uint64_t degree) {
  if (degree <= fanout) return 1;
  return static_cast<float>(static_cast<double>(degree) / fanout);
}

// Copies those of `size` ids whose number is below the threshold to `kept`, in order, and returns
// how many. May write kLaborSlack more.
inline constexpr uint32_t kLaborSlack = 16;
using LaborFilterFn = uint32_t (*)(LaborKey key, uint32_t threshold, const uint32_t* ids,
                                   uint32_t size, uint32_t* kept);

LaborFilterFn LaborFilterFor(InstructionSet set);

#if defined(__x86_64__)
uint32_t LaborFilterAvx2(LaborKey key, uint32_t threshold, const uint32_t* ids, uint32_t size,
                         uint32_t* kept);
uint32_t LaborFilterAvx512(LaborKey key, uint32_t threshold, const uint32_t* ids, uint32_t size,
                           uint32_t* kept);
#endif

}  // namespace gnnd
