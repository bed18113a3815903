#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

// Neighbours that some rows of a batch do without: of a batch of links, its own links and their
// reverses. Rows are the batch's first ones, because ends of links are seeds.
//
// A row of degree d that does without m of its neighbours is drawn as if it had the other d - m
// alone, in row order: draws give positions among these, and the place of each in the row follows
// from the m places left out. So picks are those of the graph without these edges, without a draw
// made twice. Where the batch is drawn first (`after`), the m are left out of what was drawn.

namespace gnnd {

struct RowSkips {
  std::span<const uint32_t> first;   // [rows + 1], into places; empty: no row does without any
  std::span<const uint64_t> places;  // positions in the rows, rising within each
  bool after = false;

  // Rows from here on have all their neighbours.
  uint32_t num_rows() const { return first.empty() ? 0 : static_cast<uint32_t>(first.size() - 1); }
  std::span<const uint64_t> of(uint32_t row) const {
    if (row >= num_rows()) return {};
    return places.subspan(first[row], first[row + 1] - first[row]);
  }
  uint64_t count(uint32_t row) const { return of(row).size(); }

  // Neighbours that are not there when the row is drawn.
  uint64_t Absent(uint32_t row) const { return after ? 0 : count(row); }

  // Turns `size` drawn positions, of those that were there, into positions in the row that are
  // kept; returns their number.
  uint32_t Keep(uint32_t row, uint64_t* positions, uint32_t size) const {
    const std::span<const uint64_t> left_out = of(row);
    if (left_out.empty()) return size;
    if (!after) {
      for (uint32_t j = 0; j < size; ++j) positions[j] = PlaceOf(left_out, positions[j]);
      return size;
    }
    uint32_t kept = 0;
    for (uint32_t j = 0; j < size; ++j) {
      if (Has(left_out, positions[j])) continue;
      positions[kept++] = positions[j];
    }
    return kept;
  }

  static bool Has(std::span<const uint64_t> left_out, uint64_t position) {
    return std::binary_search(left_out.begin(), left_out.end(), position);
  }

  // The position in the row of position `left` among the others. left_out[i] - i of these come
  // before the i-th that is left out, which never falls as i rises.
  static uint64_t PlaceOf(std::span<const uint64_t> left_out, uint64_t left) {
    size_t low = 0;
    size_t high = left_out.size();
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (left_out[middle] - middle <= left) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return left + low;
  }
};

}  // namespace gnnd
