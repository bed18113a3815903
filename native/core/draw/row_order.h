#pragma once

#include <cstdint>

#include "core/base/hd.h"
#include "core/draw/permutation.h"

// The order in which an epoch visits rows of propagated features, as a function: chunks of
// consecutive rows in a keyed permutation of chunks (chunk reshuffling), or, with chunks of one
// row, rows in one of rows (random reshuffling). Batches are stretches of that order. Every row
// comes once; the last chunk may be short and stands wherever the permutation puts it.
//
// Frozen, because it decides which rows make up a batch: the permutation is that of the epoch's
// training nodes (permutation.h), over chunks.

namespace gnnd {

struct RowOrder {
  PhiloxKey key;
  uint32_t epoch;
  uint32_t rows;
  uint32_t chunk;     // rows per chunk, at least 1
  uint32_t short_at;  // position of the short chunk among chunks; their number if none is short
};

GNND_HD uint32_t NumChunks(uint32_t rows, uint32_t chunk) {
  return static_cast<uint32_t>((uint64_t{rows} + chunk - 1) / chunk);
}

GNND_HD RowOrder RowOrderOf(PhiloxKey key, uint32_t epoch, uint32_t rows, uint32_t chunk) {
  const uint32_t chunks = NumChunks(rows, chunk);
  const uint32_t short_at =
      rows % chunk == 0 ? chunks : PositionOfIndex(key, epoch, chunks, chunks - 1);
  return {key, epoch, rows, chunk, short_at};
}

// Consecutive rows of the file that are consecutive in the order.
struct RowRun {
  uint32_t first;
  uint32_t count;
};

// The run that begins at `position` of the order and goes no further than `end`; position < end <=
// order.rows.
GNND_HD RowRun RowRunAt(const RowOrder& order, uint32_t position, uint32_t end) {
  const uint32_t chunks = NumChunks(order.rows, order.chunk);
  const uint64_t short_first = uint64_t{order.short_at} * order.chunk;
  uint32_t at = position / order.chunk;  // number of the chunk in the order
  uint32_t within = position % order.chunk;
  uint32_t length = order.chunk;
  if (order.short_at < chunks && position >= short_first) {
    const uint32_t short_rows = order.rows % order.chunk;
    if (position < short_first + short_rows) {
      at = order.short_at;
      within = static_cast<uint32_t>(position - short_first);
      length = short_rows;
    } else {
      at = (position - short_rows) / order.chunk + 1;
      within = (position - short_rows) % order.chunk;
    }
  }
  const uint32_t left = length - within;
  const uint32_t wanted = end - position;
  return {PermutedIndex(order.key, order.epoch, chunks, at) * order.chunk + within,
          left < wanted ? left : wanted};
}

}  // namespace gnnd
