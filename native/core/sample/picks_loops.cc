#include "core/draw/philox_lanes.h"
#include "core/sample/picks.h"
#include "core/vec/vec.h"

// Each lane is a row.

namespace gnnd::GNND_SET {
namespace {

static_assert(kGroupRows == kLanes);

// Floyd's draws. Each draw is compared with all earlier picks: the number of comparisons grows with
// the fanout's square, but each serves all rows.
void PickGroup(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
               uint32_t fanout, uint32_t* picks) {
  const U32x16 degree = Load(degrees);
  const Mask16 sampled = Below(Broadcast(fanout), degree);
  if (Bits(sampled) == 0) {
    for (uint32_t j = 0; j < fanout; ++j) Store(picks + j * kGroupRows, Broadcast(j));
    return;
  }
  const Wide node = Widen(Load(nodes));
  U32x16 last = degree - Broadcast(fanout);
  for (uint32_t block = 0; block * 4 < fanout; ++block) {
    const WideWords words = PhiloxLanes(stream.key, stream.counter, node, block);
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

void PickGroupReplace(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
                      uint32_t fanout, uint32_t* picks) {
  const Wide node = Widen(Load(nodes));
  const U32x16 bound = Load(degrees);
  for (uint32_t block = 0; block * 4 < fanout; ++block) {
    const WideWords words = PhiloxLanes(stream.key, stream.counter, node, block);
#pragma GCC unroll 4
    for (uint32_t w = 0; w < 4; ++w) {
      const uint32_t j = block * 4 + w;
      if (j == fanout) return;
      Store(picks + j * kGroupRows, MultiplyHigh(words.word[w], bound));
    }
  }
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

const PickLoops kPickLoops = {PickGroup, PickGroupReplace, DrawAlias, FindRepeats};

}  // namespace gnnd::GNND_SET
