#pragma once

#include <cstdint>

#include "core/draw/philox.h"
#include "core/draw/tree.h"
#include "core/vec/vec.h"

// Philox with one counter per lane, for loops files (core/vec/vec.h).

namespace gnnd::GNND_SET {

// Keys of the lanes of a register.
struct WideKey {
  WidePart lo;
  WidePart hi;
};

GNND_VEC WidePart KeyPart(uint32_t half) { return WideOf(half); }
GNND_VEC WidePart KeyPart(WidePart half) { return half; }

// Runs the ten rounds on kWideLanes counters, in place, with one key or one for each lane. One
// register is finished before the next, because a chain of rounds needs few registers and overlaps
// with the next chain.
template <typename Key>
GNND_VEC void PhiloxRounds(Key key, WidePart (&word)[4]) {
  const WidePart mul0 = WideOf(kPhiloxMul0);
  const WidePart mul1 = WideOf(kPhiloxMul1);
  for (uint32_t round = 0; round < kPhiloxRounds; ++round) {
    const WideProduct p0 = Multiply(word[0], mul0);
    const WideProduct p1 = Multiply(word[2], mul1);
    word[0] = Xor3(HighOf(p1), word[1], KeyPart(key.lo));
    word[2] = Xor3(HighOf(p0), word[3], KeyPart(key.hi));
    word[1] = LowOf(p1);
    word[3] = LowOf(p0);
    key.lo += kPhiloxWeyl0;
    key.hi += kPhiloxWeyl1;
  }
}

struct WideWords {
  Wide word[4];
};

// Draws for 16 nodes, each at its own block; the counter is that of node 0, block 0.
GNND_VEC WideWords PhiloxLanes(PhiloxKey key, const PhiloxCounter& counter, const Wide& nodes,
                               const Wide& blocks) {
  WideWords words;
#pragma GCC unroll kWideUnroll
  for (uint32_t p = 0; p < kWideParts; ++p) {
    WidePart word[4] = {nodes.part[p], WideOf(counter.word[1]) | blocks.part[p],
                        WideOf(counter.word[2]), WideOf(counter.word[3])};
    PhiloxRounds(key, word);
    for (uint32_t w = 0; w < 4; ++w) words.word[w].part[p] = word[w];
  }
  return words;
}

// Draws for 16 nodes at the same block.
GNND_VEC WideWords PhiloxLanes(PhiloxKey key, PhiloxCounter counter, const Wide& nodes,
                               uint32_t block) {
  counter.word[1] |= block;
  return PhiloxLanes(key, counter, nodes, Wide{});
}

struct WideKeys {
  WideKey part[kWideParts];
};

// The keys of 16 trees.
GNND_VEC WideKeys TreeKeyLanes(PhiloxKey key, const Wide& trees) {
  const WideWords words = PhiloxLanes(key, CounterOf(kTreeKey, 0, 0, 0, 0, 0), trees, 0);
  WideKeys keys;
  for (uint32_t p = 0; p < kWideParts; ++p) {
    keys.part[p] = {words.word[0].part[p], words.word[1].part[p]};
  }
  return keys;
}

// Draws for 16 nodes with a key each, at the same block.
GNND_VEC WideWords PhiloxLanes(const WideKeys& keys, const PhiloxCounter& counter,
                               const Wide& nodes, uint32_t block) {
  WideWords words;
#pragma GCC unroll kWideUnroll
  for (uint32_t p = 0; p < kWideParts; ++p) {
    WidePart word[4] = {nodes.part[p], WideOf(counter.word[1] | block), WideOf(counter.word[2]),
                        WideOf(counter.word[3])};
    PhiloxRounds(keys.part[p], word);
    for (uint32_t w = 0; w < 4; ++w) words.word[w].part[p] = word[w];
  }
  return words;
}

}  // namespace gnnd::GNND_SET
