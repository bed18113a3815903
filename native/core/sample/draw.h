#pragma once

#include <cstdint>

#include "core/base/hd.h"
#include "core/base/philox.h"
#include "core/sample/record.h"

// How a row's neighbours are drawn: uniform, without replacement, by Floyd's method (Bentley &
// Floyd, CACM 1987). Frozen, because it decides the bits of every sample:
//
//   a row of degree d <= fanout f takes all neighbours, in row order;
//   else draw j of f is t, uniform in [0, d - f + j], and pick j is t, unless an earlier pick of
//   the row is t already: then it is d - f + j.
//
// With replacement every row of degree d > 0 takes f, draw j uniform in [0, d).
//
// Word k of a row is word k % 4 of Philox block k / 4. Draw j is the high half of word j times
// (d - f + j + 1), with replacement times d. From degree kTwoWordDegree on, where that would show a
// bias, it is the high half of the 64-bit number with low word 2 j and high word 2 j + 1 times the
// same.

namespace gnnd {

inline constexpr uint64_t kTwoWordDegree = uint64_t{1} << 20;

// The draws of one hop of one batch; a node selects a row's.
struct DrawStream {
  PhiloxKey key;
  PhiloxCounter counter;  // of node 0, block 0
};

GNND_HD DrawStream DrawStreamOf(const BatchKey& key, uint32_t hop,
                                Purpose purpose = Purpose::kSample) {
  return DrawStream{KeyOf(key.random_seed), CounterOf(purpose, key.epoch, key.batch, hop, 0, 0)};
}

// Words 4 * block to 4 * block + 3 of the row of `node`.
GNND_HD PhiloxWords RowWords(const DrawStream& stream, uint32_t node, uint32_t block) {
  PhiloxCounter counter = stream.counter;
  counter.word[0] = node;
  counter.word[1] |= block;
  return Philox(stream.key, counter);
}

// Uniform in [0, bound) from two words.
GNND_HD uint64_t WideBoundedDraw(uint32_t low, uint32_t high, uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  const uint64_t word = static_cast<uint64_t>(high) << 32 | low;
  return static_cast<uint64_t>((static_cast<Wide>(word) * bound) >> 64);
}

}  // namespace gnnd
