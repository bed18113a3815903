#include "core/sample/picks.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/base/check.h"

namespace gnnd {
namespace {

constexpr uint64_t kFree = std::numeric_limits<uint64_t>::max();

void PickGroupScalar(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
                     uint32_t fanout, uint32_t* picks) {
  for (uint32_t row = 0; row < kGroupRows; ++row) {
    uint32_t* out = picks + row;
    if (degrees[row] <= fanout) {
      for (uint32_t j = 0; j < fanout; ++j) out[j * kGroupRows] = j;
      continue;
    }
    const uint32_t base = degrees[row] - fanout;
    PhiloxWords words{};
    for (uint32_t j = 0; j < fanout; ++j) {
      if (j % 4 == 0) words = RowWords(stream, nodes[row], j / 4);
      const uint32_t t = BoundedDraw(words.word[j % 4], base + j + 1);
      bool taken = false;
      for (uint32_t i = 0; i < j; ++i) taken |= out[i * kGroupRows] == t;
      out[j * kGroupRows] = taken ? base + j : t;
    }
  }
}

void PickGroupReplaceScalar(const DrawStream& stream, const uint32_t* nodes,
                            const uint32_t* degrees, uint32_t fanout, uint32_t* picks) {
  for (uint32_t row = 0; row < kGroupRows; ++row) {
    PhiloxWords words{};
    for (uint32_t j = 0; j < fanout; ++j) {
      if (j % 4 == 0) words = RowWords(stream, nodes[row], j / 4);
      picks[j * kGroupRows + row] = BoundedDraw(words.word[j % 4], degrees[row]);
    }
  }
}

void DrawAliasScalar(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
                     uint32_t draws, uint32_t* slots, uint32_t* words) {
  for (uint32_t row = 0; row < kGroupRows; ++row) {
    PhiloxWords block{};
    for (uint32_t j = 0; j < draws; ++j) {
      if (j % 2 == 0) block = RowWords(stream, nodes[row], j / 2);
      slots[j * kGroupRows + row] = BoundedDraw(block.word[j % 2 * 2], degrees[row]);
      words[j * kGroupRows + row] = block.word[j % 2 * 2 + 1];
    }
  }
}

void FindRepeatsScalar(const uint32_t* picks, uint32_t draws, uint16_t* repeats) {
  for (uint32_t j = 0; j < draws; ++j) {
    uint32_t mask = 0;
    for (uint32_t row = 0; row < kGroupRows; ++row) {
      bool repeated = false;
      for (uint32_t i = 0; i < j; ++i) {
        repeated |= picks[i * kGroupRows + row] == picks[j * kGroupRows + row];
      }
      mask |= (repeated ? uint32_t{1} : 0) << row;
    }
    repeats[j] = static_cast<uint16_t>(mask);
  }
}

// Draw j of a row of any degree: uniform in [0, bound). `words` keeps the block in use.
uint64_t DrawAt(const DrawStream& stream, uint32_t node, uint32_t words_per_draw, uint32_t j,
                uint64_t bound, PhiloxWords* words) {
  const uint32_t first = j * words_per_draw;
  if (first % 4 == 0) *words = RowWords(stream, node, first / 4);
  const uint32_t* word = words->word + first % 4;
  return words_per_draw == 1 ? BoundedDraw(word[0], static_cast<uint32_t>(bound))
                             : WideBoundedDraw(word[0], word[1], bound);
}

uint32_t WordsPerDraw(uint64_t degree) { return degree < kTwoWordDegree ? 1 : 2; }

}  // namespace

PickGroupFn PickGroupFor(InstructionSet set, bool replace) {
#if defined(__x86_64__)
  GNND_CHECK(set <= DetectInstructionSet());
  if (set == InstructionSet::kAvx512) return replace ? PickGroupReplaceAvx512 : PickGroupAvx512;
  if (set == InstructionSet::kAvx2) return replace ? PickGroupReplaceAvx2 : PickGroupAvx2;
#else
  GNND_CHECK(set == InstructionSet::kScalar);
#endif
  return replace ? PickGroupReplaceScalar : PickGroupScalar;
}

AliasKernels AliasKernelsFor(InstructionSet set) {
#if defined(__x86_64__)
  GNND_CHECK(set <= DetectInstructionSet());
  if (set == InstructionSet::kAvx512) return {DrawAliasAvx512, FindRepeatsAvx512};
  if (set == InstructionSet::kAvx2) return {DrawAliasAvx2, FindRepeatsAvx2};
#else
  GNND_CHECK(set == InstructionSet::kScalar);
#endif
  return {DrawAliasScalar, FindRepeatsScalar};
}

RowPicker::RowPicker(uint32_t max_fanout)
    : taken_(std::bit_ceil(uint64_t{2} * std::max(max_fanout, uint32_t{1})), kFree),
      shift_(64 - static_cast<uint32_t>(std::countr_zero(taken_.size()))) {}

bool RowPicker::Take(uint64_t position) {
  constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
  const uint64_t mask = taken_.size() - 1;
  for (uint64_t slot = (position * kGolden) >> shift_;; slot = (slot + 1) & mask) {
    if (taken_[slot] == position) return false;
    if (taken_[slot] != kFree) continue;
    taken_[slot] = position;
    return true;
  }
}

void RowPicker::Pick(const DrawStream& stream, uint32_t node, uint64_t degree, uint32_t fanout,
                     uint64_t* picks) {
  const uint64_t base = degree - fanout;
  PhiloxWords words{};
  for (uint32_t j = 0; j < fanout; ++j) {
    const uint64_t t = DrawAt(stream, node, WordsPerDraw(degree), j, base + j + 1, &words);
    picks[j] = t;
    if (Take(t)) continue;
    picks[j] = base + j;
    // No earlier pick can be as large, so this one is new.
    GNND_CHECK(Take(base + j));
  }
  std::fill(taken_.begin(), taken_.end(), kFree);
}

void RowPicker::PickWithReplacement(const DrawStream& stream, uint32_t node, uint64_t degree,
                                    uint32_t fanout, uint64_t* picks) {
  PhiloxWords words{};
  for (uint32_t j = 0; j < fanout; ++j) {
    picks[j] = DrawAt(stream, node, WordsPerDraw(degree), j, degree, &words);
  }
}

}  // namespace gnnd
