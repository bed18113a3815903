#pragma once

#include <cstdint>

#include "core/base/hd.h"
#include "core/draw/batch_key.h"
#include "core/draw/stream.h"

// The negatives of links: nodes drawn in place of a link's destination. Frozen, because it decides
// the bits of models and metrics.
//
//   Negative `column` of the link in `row` takes words of the row's stream (Purpose::kNegative);
//   "hop" is the attempt, counted from 0, of which only links that avoid known ones make a second.
//   In training a row is the link's position in its batch. In an evaluation the epoch is
//   kLinkEvaluationEpoch for validation and the next one for test links, a batch is a group of
//   consecutive links of their list, which share their negatives, and the row is 0; so each
//   evaluation has the same.
//
//   Uniform: the high half of the number of nodes times the 64-bit number of words 2 column (low)
//   and 2 column + 1 (high).
//
//   By degree: all four words of block `column`. Words 0 and 1 choose a degree from an alias table
//   over the degrees that occur (alias.h: slot and threshold), words 2 (low) and 3 (high) uniformly
//   one of the nodes that have it.

namespace gnnd {

// Attempts of a negative that is to avoid known links.
inline constexpr uint32_t kNegativeAttempts = 16;

GNND_HD DrawStream NegativeStream(const BatchKey& key, uint32_t attempt) {
  return DrawStreamOf(key, attempt, Purpose::kNegative);
}

// Uniform in [0, bound).
GNND_HD uint32_t NegativeDraw(const BatchKey& key, uint32_t row, uint32_t column, uint32_t attempt,
                              uint32_t bound) {
  const PhiloxWords words = LongRowWords(NegativeStream(key, attempt), row, column / 2);
  const uint32_t at = column % 2 * 2;
  return static_cast<uint32_t>(WideBoundedDraw(WordAt(words, at), WordAt(words, at + 1), bound));
}

// Sets columns [0, count) of row 0 at the first attempt: what links of an evaluation share. A block
// of words serves two of them.
GNND_HD void SharedNegatives(const BatchKey& key, uint32_t bound, uint32_t count,
                             uint32_t* columns) {
  const DrawStream stream = NegativeStream(key, 0);
  PhiloxWords words{};
  for (uint32_t i = 0; i < count; ++i) {
    if (i % 2 == 0) words = LongRowWords(stream, 0, i / 2);
    const uint32_t at = i % 2 * 2;
    columns[i] =
        static_cast<uint32_t>(WideBoundedDraw(WordAt(words, at), WordAt(words, at + 1), bound));
  }
}

}  // namespace gnnd
