#pragma once

#include <cstdint>

#include "core/base/hd.h"
#include "core/draw/stream.h"

// How a row's neighbours are drawn: uniform, without replacement, by Floyd's method (Bentley &
// Floyd, CACM 1987). Frozen, because it decides the bits of every sample:
//
//   a row of degree d <= fanout f takes all neighbours, in row order;
//   else draw j of f is t, uniform in [0, d - f + j], and pick j is t, unless an earlier pick of
//   the row is t already: then it is d - f + j.
//
// With replacement every row of degree d > 0 takes f, draw j uniform in [0, d).
//
// Draw j is the high half of word j times (d - f + j + 1), with replacement times d. From degree
// kTwoWordDegree on, it is the high half of the 64-bit number with low word 2 j and high word
// 2 j + 1 times the same.
//
// If all t of a row differ, they are its picks: no pick was ever replaced. So a device may draw
// them at once and look for repeats afterwards.

namespace gnnd {

GNND_HD uint32_t WordsPerDraw(uint64_t degree) { return degree < kTwoWordDegree ? 1 : 2; }

// Draw j from the block that has its words, uniform in [0, bound).
GNND_HD uint64_t DrawFrom(const PhiloxWords& words, uint32_t words_per_draw, uint32_t j,
                          uint64_t bound) {
  const uint32_t at = j * words_per_draw % 4;
  const uint32_t low = WordAt(words, at);
  return words_per_draw == 1 ? BoundedDraw(low, static_cast<uint32_t>(bound))
                             : WideBoundedDraw(low, WordAt(words, at + 1), bound);
}

// Draw j of a row of any degree, uniform in [0, bound). `words` caches the present block between
// draws; j counts from 0.
GNND_HD uint64_t UniformDraw(const DrawStream& stream, uint32_t node, uint32_t words_per_draw,
                             uint32_t j, uint64_t bound, PhiloxWords* words) {
  const uint32_t first = j * words_per_draw;
  if (first % 4 == 0) *words = RowWords(stream, node, first / 4);
  return DrawFrom(*words, words_per_draw, j, bound);
}

// UniformDraw for a single draw.
GNND_HD uint64_t UniformDrawAt(const DrawStream& stream, uint32_t node, uint32_t words_per_draw,
                               uint32_t j, uint64_t bound) {
  return DrawFrom(RowWords(stream, node, j * words_per_draw / 4), words_per_draw, j, bound);
}

}  // namespace gnnd
