#include "core/draw/philox_lanes.h"
#include "core/sample/picks.h"
#include "core/vec/vec.h"

// Each lane is a row.

namespace gnnd::GNND_SET {
namespace {

static_assert(kGroupRows == kLanes);

// Floyd's draws from the words that words_of(block) gives. Each draw is compared with all earlier
// picks: the number of comparisons grows with the fanout's square, but each serves all rows.
template <typename WordsOf>
GNND_VEC void PickFloyd(const WordsOf& words_of, const uint32_t* degrees, uint32_t fanout,
                        uint32_t* picks) {
  const U32x16 degree = Load(degrees);
  const Mask16 sampled = Below(Broadcast(fanout), degree);
  if (Bits(sampled) == 0) {
    for (uint32_t j = 0; j < fanout; ++j) Store(picks + j * kGroupRows, Broadcast(j));
    return;
  }
  U32x16 last = degree - Broadcast(fanout);
  for (uint32_t block = 0; block * 4 < fanout; ++block) {
    const WideWords words = words_of(block);
#pragma GCC unroll 4
    for (uint32_t w = 0; w < 4; ++w) {
      const uint32_t j = block * 4 + w;
      if (j == fanout) return;
      const U32x16 bound = last + Broadcast(1U);
      const U32x16 t = MultiplyHigh(words.word[w], bound);
      Mask16 taken = NoLanes();
      for (uint32_t i = 0; i < j; ++i) taken = taken | Equal(t, Load(picks + i * kGroupRows));
      const U32x16 pick = Select(taken, last, t);
      Store(picks + j * kGroupRows, Select(sampled, pick, Broadcast(j)));
      last = bound;
    }
  }
}

template <typename WordsOf>
GNND_VEC void PickAnew(const WordsOf& words_of, const uint32_t* degrees, uint32_t fanout,
                       uint32_t* picks) {
  const U32x16 bound = Load(degrees);
  for (uint32_t block = 0; block * 4 < fanout; ++block) {
    const WideWords words = words_of(block);
#pragma GCC unroll 4
    for (uint32_t w = 0; w < 4; ++w) {
      const uint32_t j = block * 4 + w;
      if (j == fanout) return;
      Store(picks + j * kGroupRows, MultiplyHigh(words.word[w], bound));
    }
  }
}

// Words of nodes, all with the stream's key.
struct NodeWords {
  const DrawStream& stream;
  Wide nodes;

  [[gnu::always_inline]] WideWords operator()(uint32_t block) const {
    return PhiloxLanes(stream.key, stream.counter, nodes, block);
  }
};

// Words of nodes, each with the key of its tree.
struct TreeWords {
  const DrawStream& stream;
  WideKeys keys;
  Wide nodes;

  [[gnu::always_inline]] WideWords operator()(uint32_t block) const {
    return PhiloxLanes(keys, stream.counter, nodes, block);
  }
};

void PickGroup(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
               uint32_t fanout, uint32_t* picks) {
  PickFloyd(NodeWords{stream, Widen(Load(nodes))}, degrees, fanout, picks);
}

void PickGroupReplace(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
                      uint32_t fanout, uint32_t* picks) {
  PickAnew(NodeWords{stream, Widen(Load(nodes))}, degrees, fanout, picks);
}

void PickTreeGroup(const DrawStream& stream, const uint32_t* trees, const uint32_t* nodes,
                   const uint32_t* degrees, uint32_t fanout, uint32_t* picks) {
  const WideKeys keys = TreeKeyLanes(stream.key, Widen(Load(trees)));
  PickFloyd(TreeWords{stream, keys, Widen(Load(nodes))}, degrees, fanout, picks);
}

void PickTreeGroupReplace(const DrawStream& stream, const uint32_t* trees, const uint32_t* nodes,
                          const uint32_t* degrees, uint32_t fanout, uint32_t* picks) {
  const WideKeys keys = TreeKeyLanes(stream.key, Widen(Load(trees)));
  PickAnew(TreeWords{stream, keys, Widen(Load(nodes))}, degrees, fanout, picks);
}

void DrawAlias(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
               uint32_t draws, uint32_t* slots, uint32_t* words) {
  const Wide node = Widen(Load(nodes));
  const U32x16 bound = Load(degrees);
  for (uint32_t block = 0; block * 2 < draws; ++block) {
    const WideWords drawn = PhiloxLanes(stream.key, stream.counter, node, block);
#pragma GCC unroll 2
    for (uint32_t w = 0; w < 4; w += 2) {
      const uint32_t j = block * 2 + w / 2;
      if (j == draws) return;
      Store(slots + j * kGroupRows, MultiplyHigh(drawn.word[w], bound));
      Store(words + j * kGroupRows, Narrow(drawn.word[w + 1]));
    }
  }
}

void FindRepeats(const uint32_t* picks, uint32_t draws, uint16_t* repeats) {
  for (uint32_t j = 0; j < draws; ++j) {
    const U32x16 pick = Load(picks + j * kGroupRows);
    Mask16 repeated = NoLanes();
    for (uint32_t i = 0; i < j; ++i) {
      repeated = repeated | Equal(pick, Load(picks + i * kGroupRows));
    }
    repeats[j] = static_cast<uint16_t>(Bits(repeated));
  }
}

}  // namespace

const PickLoops kPickLoops = {PickGroup, PickGroupReplace, PickTreeGroup, PickTreeGroupReplace,
                              DrawAlias, FindRepeats};

}  // namespace gnnd::GNND_SET
