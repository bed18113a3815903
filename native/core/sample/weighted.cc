#include "core/sample/weighted.h"

#include <algorithm>

#include "core/sample/row_skips.h"

namespace gnnd {
namespace {

constexpr uint64_t kSlotMass = uint64_t{1} << 32;

}  // namespace

uint32_t WeightedPicker::Pick(const DrawStream& stream, uint32_t node, const AliasEntry* row,
                              uint64_t degree, uint32_t fanout, bool replace,
                              std::span<const uint64_t> left_out, uint64_t* picks) {
  if (degree == left_out.size()) return 0;
  const auto is_left_out = [left_out](uint64_t position) {
    return !left_out.empty() && RowSkips::Has(left_out, position);
  };
  uint32_t picked = 0;
  if (!replace && degree - left_out.size() <= fanout) {
    for (uint64_t position = 0; position < degree; ++position) {
      if (row[position].threshold != 0 && !is_left_out(position)) picks[picked++] = position;
    }
    return picked;
  }
  if (IsWeightless(row[0], 0)) return 0;
  const bool hits_all = replace && left_out.empty();
  const uint32_t draws = hits_all ? fanout : kMaxWeightedRounds * WeightedCandidates(fanout);
  for (uint32_t j = 0; j < draws && picked < fanout; ++j) {
    const AliasDraw draw = AliasDrawAt(stream, node, degree, j);
    const uint64_t pick = ChosenOf(row[draw.slot], static_cast<uint32_t>(draw.slot), draw.word);
    if (is_left_out(pick)) continue;
    if (replace || std::find(picks, picks + picked, pick) == picks + picked) picks[picked++] = pick;
  }
  return picked == fanout
             ? picked
             : Scan(stream, node, row, degree, fanout, replace, left_out, picked, picks);
}

uint32_t WeightedPicker::Scan(const DrawStream& stream, uint32_t node, const AliasEntry* row,
                              uint64_t degree, uint32_t fanout, bool replace,
                              std::span<const uint64_t> left_out, uint32_t picked,
                              uint64_t* picks) {
  mass_.assign(degree, 0);
  for (uint64_t slot = 0; slot < degree; ++slot) {
    const bool full = row[slot].alias == slot;
    mass_[slot] += full ? kSlotMass : row[slot].threshold;
    if (!full) mass_[row[slot].alias] += kSlotMass - row[slot].threshold;
  }
  uint64_t left = degree * kSlotMass;
  const auto take = [&](uint64_t position) {
    left -= mass_[position];
    mass_[position] = 0;
  };
  for (const uint64_t position : left_out) take(position);
  for (uint32_t j = 0; j < picked && !replace; ++j) take(picks[j]);
  for (uint32_t m = 0; picked < fanout && left > 0; ++m) {
    const PhiloxWords words = RowWords(stream, node, kScanBlock + m / 2);
    const uint32_t* pair = words.word + m % 2 * 2;
    const uint64_t target = WideBoundedDraw(pair[0], pair[1], left);
    uint64_t position = 0;
    for (uint64_t passed = mass_[0]; passed <= target; passed += mass_[position]) ++position;
    picks[picked++] = position;
    if (!replace) take(position);
  }
  return picked;
}

}  // namespace gnnd
