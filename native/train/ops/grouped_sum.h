#pragma once

#include <algorithm>
#include <cstdint>

#include "train/ops/parallel.h"
#include "train/ops/workspace.h"

namespace gnnd {

// Sets total [width] to the sum over all rows: over groups of 64 rows each, then over the groups in
// their order, whatever the number of threads. add(begin, end, sums) adds some rows to `sums`.
template <typename T, typename AddRows>
void SumInGroups(uint32_t rows, uint64_t width, Workspace* workspace, T* total,
                 const AddRows& add) {
  constexpr uint32_t kGroupRows = 64;
  const uint32_t groups = (rows + kGroupRows - 1) / kGroupRows;
  T* partial = workspace->Get<T>(groups * width);
  ParallelRows(groups, 1, [&](uint32_t begin, uint32_t end) {
    for (uint32_t g = begin; g < end; ++g) {
      T* sums = partial + g * width;
      std::fill_n(sums, width, T{0});
      add(g * kGroupRows, std::min(rows, (g + 1) * kGroupRows), sums);
    }
  });
  std::fill_n(total, width, T{0});
  for (uint64_t g = 0; g < groups; ++g) {
    for (uint64_t c = 0; c < width; ++c) total[c] += partial[g * width + c];
  }
}

}  // namespace gnnd
