#pragma once

#include <cstdint>

#include "core/base/hd.h"
#include "core/draw/floyd.h"
#include "core/draw/stream.h"

// Locality-aware sampling (Song and Jiang, ICS'22, section 4): nodes that devices hold, and nodes
// that lead to them, are *favoured*: drawn s times as likely as others. The estimate stays unbiased
// because each pick counts 1 / q, where q is the probability with which it was drawn. Frozen,
// because it decides bits (core/sample/locality_hop.h).
//
//   A row of degree d > fanout f, m of whose neighbours are favoured, takes f distinct ones:
//   x = f s m / (s m + d - m) favoured ones in the mean, at most m, and f - x others. How many it
//   is follows from one draw, the whole part of x or one more; which they are are two uniform
//   picks. So each favoured neighbour is in with probability x / m exactly (to 2^-24), each other
//   one with (f - x) / (d - m): the weights s and 1, scaled to sum to f, capped at 1 and the rest
//   shared by the others. A row with d <= f takes all neighbours, each counting 1.
//
//   s is in sixteenths, 16 to 128; with 16 callers take the base sampler's draws.
//   Draw 0 is the upper 24 bits of word 0: one more iff draw * parts < part * 2^24, x being
//   whole + part / parts. Draws 1 to f are Floyd's (floyd.h): first among the favoured, in the
//   order of their positions, then among the others.

namespace gnnd {

inline constexpr uint32_t kScaleOne = 16;    // s = 1
inline constexpr uint32_t kScaleMost = 128;  // s = 8

// A row that does not take all its neighbours.
struct LocalityRow {
  uint64_t degree = 0;
  uint64_t favoured = 0;  // m
  uint32_t fanout = 0;    // below degree and 2^20
  uint32_t scale = kScaleOne;
};

// s m + d - m, in sixteenths. Below 2^40.
GNND_HD uint64_t WeightOf(const LocalityRow& row) {
  return row.scale * row.favoured + kScaleOne * (row.degree - row.favoured);
}

// Whether s would give a favoured neighbour a probability of 1 or more, so that all are taken.
GNND_HD bool TakesAllFavoured(const LocalityRow& row) {
  return uint64_t{row.fanout} * row.scale >= WeightOf(row);
}

// Number of favoured neighbours that the row takes; `word` is word 0 of its stream.
GNND_HD uint32_t FavouredPicks(const LocalityRow& row, uint32_t word) {
  if (TakesAllFavoured(row)) return static_cast<uint32_t>(row.favoured);
  const uint64_t parts = WeightOf(row);
  const uint64_t wanted = uint64_t{row.fanout} * row.scale * row.favoured;  // below 2^59
  const bool one_more = uint64_t{word >> 8} * parts < wanted % parts << 24;
  return static_cast<uint32_t>(wanted / parts) + (one_more ? 1 : 0);
}

// Weight of a favoured pick: 1 / q. 1 / (d q) is its share in a mean over the row.
GNND_HD double FavouredWeight(const LocalityRow& row) {
  if (TakesAllFavoured(row)) return 1;
  return static_cast<double>(WeightOf(row)) / (static_cast<double>(row.fanout) * row.scale);
}

// Weight of another pick. REQUIRES: favoured < degree, and the row has room for one.
GNND_HD double OtherWeight(const LocalityRow& row) {
  if (TakesAllFavoured(row)) {
    return static_cast<double>(row.degree - row.favoured) /
           static_cast<double>(row.fanout - row.favoured);
  }
  return static_cast<double>(WeightOf(row)) / (static_cast<double>(row.fanout) * kScaleOne);
}

// Position in the row of the neighbour that is number `index` among those not favoured. `favoured`
// holds the `count` ascending positions of the favoured ones.
GNND_HD uint64_t OtherPosition(const uint32_t* favoured, uint64_t count, uint64_t index) {
  uint64_t low = 0;
  uint64_t high = count;
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    if (favoured[middle] <= index + middle) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return index + low;
}

// Writes the row.fanout picks as positions in the row, favoured ones first, and returns how many of
// them are favoured. `favoured` has row.favoured ascending positions.
GNND_HD uint32_t PickLocally(const DrawStream& stream, uint32_t node, const LocalityRow& row,
                             const uint32_t* favoured, uint32_t* picks) {
  const uint32_t words_per_draw = WordsPerDraw(row.degree);
  PhiloxWords words = RowWords(stream, node, 0);
  const uint32_t near = FavouredPicks(row, words.word[0]);
  for (uint32_t j = 0; j < row.fanout; ++j) {
    const bool is_near = j < near;
    const uint32_t first = is_near ? 0 : near;
    const uint64_t among = is_near ? row.favoured : row.degree - row.favoured;
    const uint64_t last = among - (is_near ? near : row.fanout - near) + (j - first);
    uint64_t pick = UniformDraw(stream, node, words_per_draw, j + 1, last + 1, &words);
    for (uint32_t i = first; i < j; ++i) {
      if (picks[i] == pick) {
        pick = last;
        break;
      }
    }
    picks[j] = static_cast<uint32_t>(pick);
  }
  for (uint32_t j = 0; j < row.fanout; ++j) {
    const uint64_t position =
        j < near ? favoured[picks[j]] : OtherPosition(favoured, row.favoured, picks[j]);
    picks[j] = static_cast<uint32_t>(position);
  }
  return near;
}

// The scale s from epoch to epoch (Algorithm 2 of the paper, corrected: it never passes the
// maximum, and it ends). It is doubled while extraction takes over a fifth of extraction and
// training together, goes half the way back when it takes less than 0.15, and is fixed once neither
// holds or steps are below an eighth.
struct LocalityScale {
  uint32_t scale = kScaleOne;
  uint32_t before = kScaleOne;
  bool fixed = false;
};

// The scale after an epoch with these times of extraction and training, in any unit below 2^59. It
// never exceeds `most`.
GNND_HD LocalityScale NextScale(LocalityScale now, uint64_t extract, uint64_t train,
                                uint32_t most = kScaleMost) {
  if (now.fixed) return now;
  const uint64_t both = extract + train;
  if (5 * extract > both) {
    if (now.scale >= most) return {now.scale, now.before, true};
    const uint32_t doubled = now.scale > most / 2 ? most : 2 * now.scale;
    return {doubled, now.scale, false};
  }
  if (20 * extract < 3 * both && now.scale != kScaleOne) {
    const uint32_t back = (now.scale + now.before) / 2;
    return {back, now.before, back - now.before < kScaleOne / 8};
  }
  return {now.scale, now.before, true};
}

}  // namespace gnnd
