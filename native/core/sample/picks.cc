#include "core/sample/picks.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/base/check.h"

namespace gnnd {
namespace {

constexpr uint64_t kFree = std::numeric_limits<uint64_t>::max();

}  // namespace

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
    const uint64_t t = UniformDraw(stream, node, WordsPerDraw(degree), j, base + j + 1, &words);
    picks[j] = t;
    if (Take(t)) continue;
    picks[j] = base + j;
    // Earlier picks are all smaller, so this one is new.
    GNND_CHECK(Take(base + j));
  }
  std::fill(taken_.begin(), taken_.end(), kFree);
}

void RowPicker::PickWithReplacement(const DrawStream& stream, uint32_t node, uint64_t degree,
                                    uint32_t fanout, uint64_t* picks) {
  PhiloxWords words{};
  for (uint32_t j = 0; j < fanout; ++j) {
    picks[j] = UniformDraw(stream, node, WordsPerDraw(degree), j, degree, &words);
  }
}

}  // namespace gnnd
