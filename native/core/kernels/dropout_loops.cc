#include "core/draw/philox_lanes.h"
#include "core/kernels/dropout.h"
#include "core/vec/vec.h"

// A lane is a Philox block: kStepBlocks of them give the draws of 4 * kStepBlocks neighbouring
// columns.

namespace gnnd::GNND_SET {
namespace {

constexpr uint32_t kStepBlocks = kWideLanes < 4 ? 4 : kWideLanes;
constexpr uint32_t kStepColumns = 4 * kStepBlocks;

// Bit 4 * i for every bit i of an index: spreads one word's survivors over their columns.
constexpr uint32_t kSpreadNibble[16] = {0x0000, 0x0001, 0x0010, 0x0011, 0x0100, 0x0101,
                                        0x0110, 0x0111, 0x1000, 0x1001, 0x1010, 0x1011,
                                        0x1100, 0x1101, 0x1110, 0x1111};

GNND_VEC uint32_t Spread(uint32_t bits) {
  if (kWideLanes == 1) return bits;
  const uint32_t low = kSpreadNibble[bits & 15U];
  return kWideLanes == 4 ? low : low | kSpreadNibble[bits >> 4] << 16;
}

// State that is common to all columns of a row.
struct RowCounters {
  PhiloxKey key;
  WidePart node;
  WidePart first_block;  // first block of each lane
  WidePart batch;
  WidePart purpose;
};

// Bit c is set when column 4 * block + c survives; c < kStepColumns.
GNND_VEC uint32_t SurvivorBits(const RowCounters& row, uint32_t block, uint32_t threshold) {
  uint32_t bits = 0;
#pragma GCC unroll 4
  for (uint32_t at = 0; at < kStepBlocks; at += kWideLanes) {
    WidePart word[4] = {row.node, row.first_block + WideOf(block + at), row.batch, row.purpose};
    PhiloxRounds(row.key, word);
#pragma GCC unroll 4
    for (uint32_t w = 0; w < 4; ++w) {
      bits |= Spread(NotBelowBits(word[w], threshold)) << (4 * at + w);
    }
  }
  return bits;
}

// Applies dropout to `count` <= kStepColumns elements; bit c of `bits`: element c survives.
template <typename T>
GNND_VEC void Apply(T* elements, uint32_t count, uint32_t bits, float scale, bool relu) {
  const F32x16 factor = Broadcast(scale);
  for (uint32_t at = 0; at < count; at += kLanes) {
    const uint32_t left = count - at;
    const Tail tail = TailOf(left < kLanes ? left : kLanes);
    const F32x16 value = Load(elements + at, tail);
    Mask16 keep = LanesOf(bits >> at);
    if (relu) keep = keep & NotAtMostZero(value);
    Store(elements + at, Keep(keep, value * factor), tail);
  }
}

template <typename T>
void RunRows(const DropoutRows<T, float>& op, uint32_t begin, uint32_t end) {
  const DrawStream stream = DropoutStream(op.key, Purpose::kDropout);
  const auto threshold = static_cast<uint32_t>(op.threshold);  // below 2^32, as p is below 1
  RowCounters row;
  row.key = stream.key;
  row.first_block = WideOf(stream.counter.word[1]) + WideLaneNumbers();
  row.batch = WideOf(stream.counter.word[2]);
  row.purpose = WideOf(stream.counter.word[3]);
  for (uint32_t r = begin; r < end; ++r) {
    row.node = WideOf(op.nodes[r]);
    T* const elements = op.rows + r * op.stride;
    for (uint32_t column = 0; column < op.columns; column += kStepColumns) {
      const uint32_t left = op.columns - column;
      Apply(elements + column, left < kStepColumns ? left : kStepColumns,
            SurvivorBits(row, column / 4, threshold), op.scale, op.relu);
    }
  }
}

}  // namespace

const DropoutLoops kDropoutLoops = {RunRows<float>, RunRows<Bfloat16>};

}  // namespace gnnd::GNND_SET
