#pragma once

#include <cstdint>

#include "cuda/dev.h"

// Sums in a fixed order. Over a row's columns: eight lanes per row, column c added by lane c % 8.
// Over rows: 64 rows at a time, then those sums in their order.

namespace gnnd::cuda {

inline constexpr uint32_t kParts = 8;
inline constexpr uint32_t kGroupRows = 64;

constexpr uint64_t GroupsOf(uint64_t rows) {
  return rows / kGroupRows + (rows % kGroupRows == 0 ? 0 : 1);
}

GNND_DEVICE uint32_t Part() { return Lane() % kParts; }
GNND_DEVICE uint32_t PartsMask() { return GroupMask(kParts); }

// Adds the parts of all lanes, by halves.
GNND_DEVICE float SumOfParts(float sum) {
  sum += ShuffleXor(PartsMask(), sum, 4, kParts);
  sum += ShuffleXor(PartsMask(), sum, 2, kParts);
  return sum + ShuffleXor(PartsMask(), sum, 1, kParts);
}

// Sums term(c) over columns as train/ops/ops.h sums a product of rows.
template <typename Term>
GNND_DEVICE float SumInParts(uint32_t columns, const Term& term) {
  float sum = 0;
  for (uint32_t c = Part(); c < columns; c += kParts) sum += term(c);
  return SumOfParts(sum);
}

// Sets partial[group][c] = the sum of term(row, c) over a group's rows, one thread per column.
template <typename Term>
GNND_KERNEL SumOfGroups(Term term, uint64_t rows, uint64_t width, float* partial) {
  const uint64_t sums = GroupsOf(rows) * width;
  for (uint64_t i = GridThread(); i < sums; i += GridThreads()) {
    const uint64_t begin = i / width * kGroupRows;
    const uint64_t end = begin + kGroupRows < rows ? begin + kGroupRows : rows;
    float sum = 0;
    for (uint64_t r = begin; r < end; ++r) sum += term.At(r, i % width);
    partial[i] = sum;
  }
}

template <typename T>
GNND_KERNEL SumGroups(const T* partial, uint64_t groups, uint64_t width, T* total) {
  for (uint64_t c = GridThread(); c < width; c += GridThreads()) {
    T sum = 0;
    for (uint64_t g = 0; g < groups; ++g) sum += partial[g * width + c];
    total[c] = sum;
  }
}

// Sets total[c] = the sum of term.At(row, c); `partial` has GroupsOf(rows) * width floats.
template <typename Term>
void SumRowsInGroups(const Queue& queue, const Term& term, uint64_t rows, uint64_t width,
                     float* partial, float* total) {
  const uint64_t groups = GroupsOf(rows);
  LaunchFor(queue, groups * width, SumOfGroups<Term>, term, rows, width, partial);
  LaunchFor(queue, width, SumGroups<float>, partial, groups, width, total);
}

}  // namespace gnnd::cuda
