#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/draw/alias.h"

namespace gnnd {

// Draws row by row for any degree and fanout, plainly by the definition (core/draw/alias.h).
class WeightedPicker {
 public:
  // Writes up to `fanout` positions of the row with these entries; returns how many. Those at
  // `left_out`, rising, are no entries of it: draws that fall on them go for nothing.
  uint32_t Pick(const DrawStream& stream, uint32_t node, const AliasEntry* row, uint64_t degree,
                uint32_t fanout, bool replace, std::span<const uint64_t> left_out, uint64_t* picks);

  // Grows with the longest row that was scanned.
  uint64_t bytes() const { return mass_.capacity() * sizeof(uint64_t); }

 private:
  uint32_t Scan(const DrawStream& stream, uint32_t node, const AliasEntry* row, uint64_t degree,
                uint32_t fanout, bool replace, std::span<const uint64_t> left_out, uint32_t picked,
                uint64_t* picks);

  std::vector<uint64_t> mass_;
};

}  // namespace gnnd
