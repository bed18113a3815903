#pragma once

#include <cstdint>
#include <utility>

#include "core/base/prefetch.h"
#include "train/gather_sum.h"

// The vector form of GatherSum, written once over a trait of the instruction set and included only
// by the files compiled for one. A trait has Reg, Mask, kLanes, kMaxRegs and the static functions
// used below; it must be local to its file (anonymous namespace), so that no other file can end up
// calling code compiled for instructions it does not have.
//
// A group of up to kMaxRegs registers holds a stretch of columns of one row; wider rows take
// several passes. Loads and stores of the last register are masked, so nothing is padded.

namespace gnnd {

// How many edges ahead the rows are prefetched; a row is up to 16 lines, which keeps the line-fill
// buffers busy without running far ahead.
inline constexpr uint32_t kPrefetchEdges = 6;

template <typename S, uint32_t kRegs>
inline __attribute__((always_inline)) void LoadRegs(const float* from, typename S::Mask tail,
                                                    typename S::Reg (&regs)[kRegs]) {
#pragma GCC unroll 16
  for (uint32_t k = 0; k + 1 < kRegs; ++k) regs[k] = S::Load(from + k * S::kLanes);
  regs[kRegs - 1] = S::LoadMasked(from + (kRegs - 1) * S::kLanes, tail);
}

template <typename S, uint32_t kRegs>
inline __attribute__((always_inline)) void ScaleRegs(float factor, typename S::Reg (&regs)[kRegs]) {
  const typename S::Reg wide = S::Broadcast(factor);
#pragma GCC unroll 16
  for (uint32_t k = 0; k < kRegs; ++k) regs[k] = S::Mul(wide, regs[k]);
}

template <typename S, uint32_t kRegs>
GNND_PREFETCHES void PrefetchRegs(const float* row) {
#pragma GCC unroll 16
  for (uint32_t at = 0; at < kRegs * S::kLanes; at += 16) __builtin_prefetch(row + at);
}

// Columns [column, column + kRegs * kLanes) of rows [begin, end); `tail` masks the last register.
template <typename S, uint32_t kRegs, bool kWeighted>
void GatherSumColumns(const GatherSum<float>& op, uint32_t column, typename S::Mask tail,
                      uint32_t begin, uint32_t end) {
  using Reg = typename S::Reg;
  const float* const x = op.x + column;
  const uint32_t last_edge = op.indptr[end];
  for (uint32_t row = begin; row < end; ++row) {
    Reg sum[kRegs];
    if (op.self != nullptr && row < op.self_rows) {
      const uint64_t self_row = op.self_index == nullptr ? row : op.self_index[row];
      LoadRegs<S, kRegs>(op.self + self_row * op.self_stride + column, tail, sum);
      if (op.self_weight != nullptr) ScaleRegs<S, kRegs>(op.self_weight[row], sum);
    } else {
#pragma GCC unroll 16
      for (uint32_t k = 0; k < kRegs; ++k) sum[k] = S::Zero();
    }
    for (uint32_t e = op.indptr[row]; e < op.indptr[row + 1]; ++e) {
      if (e + kPrefetchEdges < last_edge) {
        PrefetchRegs<S, kRegs>(x + op.index[e + kPrefetchEdges] * op.x_stride);
      }
      Reg term[kRegs];
      LoadRegs<S, kRegs>(x + op.index[e] * op.x_stride, tail, term);
      if constexpr (kWeighted) ScaleRegs<S, kRegs>(op.weight[e], term);
#pragma GCC unroll 16
      for (uint32_t k = 0; k < kRegs; ++k) sum[k] = S::Add(sum[k], term[k]);
    }
    if (op.scale != nullptr) ScaleRegs<S, kRegs>(op.scale[row], sum);
    float* const out = op.out + row * op.out_stride + column;
#pragma GCC unroll 16
    for (uint32_t k = 0; k + 1 < kRegs; ++k) S::Store(out + k * S::kLanes, sum[k]);
    S::StoreMasked(out + (kRegs - 1) * S::kLanes, tail, sum[kRegs - 1]);
  }
}

template <typename S>
using ColumnsFunction = void (*)(const GatherSum<float>&, uint32_t, typename S::Mask, uint32_t,
                                 uint32_t);

template <typename S, bool kWeighted, uint32_t... kIndex>
ColumnsFunction<S> ColumnsFor(uint32_t regs, std::integer_sequence<uint32_t, kIndex...>) {
  static constexpr ColumnsFunction<S> kTable[] = {GatherSumColumns<S, kIndex + 1, kWeighted>...};
  return kTable[regs - 1];
}

template <typename S>
void GatherSumSimd(const GatherSum<float>& op, uint32_t begin, uint32_t end) {
  using Indices = std::make_integer_sequence<uint32_t, S::kMaxRegs>;
  for (uint32_t column = 0; column < op.columns;) {
    const uint32_t left = op.columns - column;
    const uint32_t needed = (left + S::kLanes - 1) / S::kLanes;
    const uint32_t regs = needed < S::kMaxRegs ? needed : S::kMaxRegs;
    const uint32_t before_last = (regs - 1) * S::kLanes;
    const uint32_t in_last = left - before_last;
    const auto tail = S::FirstLanes(in_last < S::kLanes ? in_last : S::kLanes);
    const auto columns = op.weight == nullptr ? ColumnsFor<S, false>(regs, Indices())
                                              : ColumnsFor<S, true>(regs, Indices());
    columns(op, column, tail, begin, end);
    column += regs * S::kLanes;
  }
}

}  // namespace gnnd
