#pragma once

#include <cstdint>
#include <span>

#include "core/base/check.h"
#include "core/base/hd.h"
#include "include/gnnd/device_kernels.h"

// The table by which kernels find rows (gnnd_device_row_tiers): its construction, and its lookup by
// kernels and by code that counts reads.

namespace gnnd {

// The row of a rank: row `row` of place `index`.
struct RowSpot {
  uint32_t index = 0xFFFFFFFF;  // kNoSpot: in no place that can be read
  uint32_t row = 0;
};
inline constexpr uint32_t kNoSpot = 0xFFFFFFFF;

GNND_HD RowSpot SpotOf(const gnnd_device_row_tiers& tiers, uint32_t rank) {
  for (uint32_t l = 0; l < tiers.lines; ++l) {
    const gnnd_device_row_line& line = tiers.line[l];
    if (rank < line.from || rank >= line.to) continue;
    const uint32_t offset = rank - line.from;
    // Spares a plain cache the division.
    const uint32_t row = line.hands == 1 ? offset : offset / line.hands;
    const uint32_t index = line.place + offset - row * line.hands;
    if (tiers.place[index] != nullptr) return {index, row};
  }
  return {};
}

// Adds a line: ranks from `from` on and below `to`, dealt in rotation to places whose rows begin at
// these addresses (null: cannot be read). Leaves out empty lines. REQUIRES: there is room.
inline void AddLine(gnnd_device_row_tiers* tiers, uint32_t from, uint32_t to,
                    std::span<const void* const> places) {
  if (from >= to || places.empty()) return;
  GNND_CHECK(tiers->lines < GNND_DEVICE_ROW_LINES &&
             places.size() <= GNND_DEVICE_ROW_PLACES - tiers->places);
  tiers->line[tiers->lines++] = {from, to, static_cast<uint32_t>(places.size()), tiers->places};
  for (const void* const place : places) tiers->place[tiers->places++] = place;
}

// Adds the rows of the first ranks, in their order.
inline void AddPrefix(gnnd_device_row_tiers* tiers, uint64_t rows, const void* memory) {
  AddLine(tiers, 0, static_cast<uint32_t>(rows), std::span(&memory, 1));
}

}  // namespace gnnd
