#pragma once

#include <cstdint>

#include "core/base/hd.h"
#include "core/draw/batch_key.h"
#include "core/draw/philox.h"

// The random words of a row. Word k of a row is word k % 4 of Philox block k / 4, at the row's
// node. Their use is in floyd.h (uniform), alias.h (by edge weight), walk.h and labor.h.

namespace gnnd {

// The draws of one hop of one batch; a node selects the words of its row.
struct DrawStream {
  PhiloxKey key;
  PhiloxCounter counter;  // the counter of node 0, block 0
};

// Draws for edges of `relation`; a graph with one kind of edge has relation 0.
GNND_HD DrawStream DrawStreamOf(const BatchKey& key, uint32_t hop,
                                Purpose purpose = Purpose::kSample, uint32_t relation = 0) {
  return DrawStream{RelationKey(KeyOf(key.random_seed), relation),
                    CounterOf(purpose, key.epoch, key.batch, hop, 0, 0)};
}

// Words 4 * block to 4 * block + 3 of the row of `node`; block < kPageBlocks.
GNND_HD PhiloxWords RowWords(const DrawStream& stream, uint32_t node, uint32_t block) {
  PhiloxCounter counter = stream.counter;
  counter.word[0] = node;
  counter.word[1] |= block;
  return Philox(stream.key, counter);
}

// RowWords for any block below 2^48 and any node below 2^44.
GNND_HD PhiloxWords LongRowWords(const DrawStream& stream, uint64_t node, uint64_t block) {
  PhiloxCounter counter = stream.counter;
  counter.word[0] = static_cast<uint32_t>(node);
  counter.word[1] |=
      static_cast<uint32_t>(node >> 32) << 20 | static_cast<uint32_t>(block % kPageBlocks);
  return Philox(PageKey(stream.key, static_cast<uint32_t>(block / kPageBlocks)), counter);
}

// From this degree on a uniform draw takes two words, because one would be visibly biased.
inline constexpr uint64_t kTwoWordDegree = uint64_t{1} << 20;

// Uniform in [0, bound) from two words: the high half of the 64-bit number times the bound.
GNND_HD uint64_t WideBoundedDraw(uint32_t low, uint32_t high, uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  const uint64_t word = static_cast<uint64_t>(high) << 32 | low;
  return static_cast<uint64_t>((static_cast<Wide>(word) * bound) >> 64);
}

}  // namespace gnnd
