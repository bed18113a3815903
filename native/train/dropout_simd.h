#pragma once

#include <cstdint>

#include "core/base/philox.h"
#include "train/dropout.h"

// The vector form of keyed dropout, written once over a trait of the instruction set and included
// only by the files compiled for one; the trait must be local to its file (see gather_sum_simd.h).
//
// A lane is a Philox block: kLanes of them give the draws of 4 * kLanes neighbouring columns. Each
// counter word sits in a 64-bit lane whose high half is don't-care, because the widening multiply
// ignores it; a round is then two multiplies, two shifts and two three-way XORs without shuffles.

namespace gnnd {

// Bit 4 * i for every bit i of an index: spreads one word's survivors over their columns. Not
// inline: that is a symbol which the files for each instruction set would share.
constexpr uint32_t kSpreadNibble[16] = {0x0000, 0x0001, 0x0010, 0x0011, 0x0100, 0x0101,
                                        0x0110, 0x0111, 0x1000, 0x1001, 0x1010, 0x1011,
                                        0x1100, 0x1101, 0x1110, 0x1111};

// What stays the same over all columns of a row. Each member has one 64-bit lane per block.
template <typename S>
struct DropoutLanes {
  typename S::Reg node;         // counter word 0
  typename S::Reg first_block;  // counter word 1 of the lane's first block
  typename S::Reg batch;        // counter word 2
  typename S::Reg purpose;      // counter word 3
  typename S::Reg threshold;
};

// Bit c is set when column first_column + c survives; c < 4 * kLanes.
template <typename S>
inline __attribute__((always_inline)) uint32_t SurvivorBits(const DropoutLanes<S>& lanes,
                                                            PhiloxKey key, uint32_t block) {
  using Reg = typename S::Reg;
  const Reg mul0 = S::Broadcast(0xD2511F53U);
  const Reg mul1 = S::Broadcast(0xCD9E8D57U);
  Reg c0 = lanes.node;
  Reg c1 = S::Add(lanes.first_block, S::Broadcast(block));
  Reg c2 = lanes.batch;
  Reg c3 = lanes.purpose;
#pragma GCC unroll 10
  for (uint32_t round = 0; round < 10; ++round) {
    const Reg p0 = S::MulWide(mul0, c0);
    const Reg p1 = S::MulWide(mul1, c2);
    c0 = S::Xor3(S::High(p1), c1, S::Broadcast(key.lo + round * 0x9E3779B9U));
    c2 = S::Xor3(S::High(p0), c3, S::Broadcast(key.hi + round * 0xBB67AE85U));
    c1 = p1;
    c3 = p0;
  }
  return S::Spread(S::NotBelow(c0, lanes.threshold)) |
         S::Spread(S::NotBelow(c1, lanes.threshold)) << 1 |
         S::Spread(S::NotBelow(c2, lanes.threshold)) << 2 |
         S::Spread(S::NotBelow(c3, lanes.threshold)) << 3;
}

template <typename S>
void DropoutSimd(const DropoutRows<float>& op, uint32_t begin, uint32_t end) {
  const PhiloxKey key = KeyOf(op.key.random_seed);
  const uint32_t step = 4 * S::kLanes;
  DropoutLanes<S> lanes;
  const PhiloxCounter counter =
      CounterOf(Purpose::kDropout, op.key.epoch, op.key.batch, op.key.layer, 0, 0);
  lanes.first_block = S::Add(S::Broadcast(counter.word[1]), S::LaneNumbers());
  lanes.batch = S::Broadcast(counter.word[2]);
  lanes.purpose = S::Broadcast(counter.word[3]);
  lanes.threshold = S::Broadcast(op.threshold);
  for (uint32_t r = begin; r < end; ++r) {
    lanes.node = S::Broadcast(op.nodes[r]);
    float* const row = op.rows + r * op.stride;
    for (uint32_t column = 0; column < op.columns; column += step) {
      uint32_t bits = SurvivorBits<S>(lanes, key, column / 4);
      const uint32_t left = op.columns - column;
      if (left < 32) bits &= (1U << left) - 1U;
      S::Apply(row + column, left < step ? left : step, bits, op.scale, op.relu);
    }
  }
}

}  // namespace gnnd
