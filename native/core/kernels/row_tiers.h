#pragma once

#include <cstdint>
#include <span>

#include "core/base/check.h"
#include "core/base/hd.h"
#include "include/gnnd/device_kernels.h"

// The table by which kernels find rows (gnnd_device_row_tiers): how it is made, and how it is read,
// by kernels and by who counts what they read.

namespace gnnd {

// Row `row` of place `index` has a rank.
struct RowSpot {
  uint32_t index = 0xFFFFFFFF;  // kNoSpot: no place that can be read has it
  uint32_t row = 0;
};
inline constexpr uint32_t kNoSpot = 0xFFFFFFFF;

GNND_HD RowSpot SpotOf(const gnnd_device_row_tiers& tiers, uint32_t rank) {
  for (uint32_t l = 0; l < tiers.lines; ++l) {
    const gnnd_device_row_line& line = tiers.line[l];
    if (rank < line.from || rank >= line.to) continue;
    const uint32_t offset = rank - line.from;
    // A plain cache shall not pay for a division.
    const uint32_t row = line.hands == 1 ? offset : offset / line.hands;
    const uint32_t index = line.place + offset - row * line.hands;
    if (tiers.place[index] != nullptr) return {index, row};
  }
  return {};
}

// Ranks from `from` on and below `to`, dealt in rotation to the places, whose rows begin there;
// null: nobody can read them. A line without ranks is none. REQUIRES: there is room.
inline void AddLine(gnnd_device_row_tiers* tiers, uint32_t from, uint32_t to,
                    std::span<const void* const> places) {
  if (from >= to || places.empty()) return;
  GNND_CHECK(tiers->lines < GNND_DEVICE_ROW_LINES &&
             places.size() <= GNND_DEVICE_ROW_PLACES - tiers->places);
  tiers->line[tiers->lines++] = {from, to, static_cast<uint32_t>(places.size()), tiers->places};
  for (const void* const place : places) tiers->place[tiers->places++] = place;
}

// The first ranks' rows in their order.
inline void AddPrefix(gnnd_device_row_tiers* tiers, uint64_t rows, const void* memory) {
  AddLine(tiers, 0, static_cast<uint32_t>(rows), std::span(&memory, 1));
}

}  // namespace gnnd
