#pragma once

#include <cstdint>

#include "core/base/bfloat16.h"
#include "core/base/half.h"
#include "core/vec/dispatch.h"

// The product of a sparse matrix and rows of features: sums of gathered rows. Forward aggregation
// is such a product over a block's CSC, backward one over its transpose; bottom-layer aggregation
// straight from the feature store has global node ids in its index. No tensor of edges x features
// ever exists.

namespace gnnd {

// One product in T (float or double) over rows of Element: T, or a narrow type for float, widened
// as it is read. Its results are stored as Out: T, or bfloat16, to which a sum is rounded once. For
// every row r:
//
//   out[r] = scale[r] * (self_weight[r] * self[r] + sum over e of weight[e] * x[index[e]])
//
// with e from indptr[r] to indptr[r + 1] in that order, the self term first and only where
// r < self_rows. Each column is summed by itself with one rounding per operation (never fused), so
// every variant of the kernel and any split of the rows give the same bits.
template <typename T, typename Element = T, typename Out = T>
struct Spmm {
  const Element* x = nullptr;  // rows of `x_stride` elements; the first `columns` are read
  uint64_t x_stride = 0;
  uint32_t columns = 0;

  const uint32_t* indptr = nullptr;  // [rows + 1]
  const uint32_t* index = nullptr;   // [indptr[rows]], rows of x
  const T* weight = nullptr;         // [indptr[rows]]; null = 1

  const Element* self = nullptr;  // null = no self term
  uint64_t self_stride = 0;
  const uint32_t* self_index = nullptr;  // [self_rows], rows of self; null = r itself
  const T* self_weight = nullptr;        // [self_rows]; null = 1
  uint32_t self_rows = 0;

  const T* scale = nullptr;  // [rows]; null = 1

  Out* out = nullptr;  // must not overlap an input
  uint64_t out_stride = 0;
};

// The types that core/kernels is compiled for.
using SpmmFloat = Spmm<float>;
using SpmmHalf = Spmm<float, Half>;
using SpmmDouble = Spmm<double>;
using SpmmBfloat16 = Spmm<float, Bfloat16, Bfloat16>;
using SpmmFloatToBfloat16 = Spmm<float, float, Bfloat16>;
using SpmmHalfToBfloat16 = Spmm<float, Half, Bfloat16>;

// Runs rows [begin, end) of a product.
struct SpmmLoops {
  void (*of_float)(const SpmmFloat& op, uint32_t begin, uint32_t end);
  void (*of_half)(const SpmmHalf& op, uint32_t begin, uint32_t end);
  void (*of_double)(const SpmmDouble& op, uint32_t begin, uint32_t end);
  void (*of_bfloat16)(const SpmmBfloat16& op, uint32_t begin, uint32_t end);
  void (*of_float_to_bfloat16)(const SpmmFloatToBfloat16& op, uint32_t begin, uint32_t end);
  void (*of_half_to_bfloat16)(const SpmmHalfToBfloat16& op, uint32_t begin, uint32_t end);
};
GNND_DECLARE_LOOPS(SpmmLoops, kSpmmLoops);

// Runs the best variant for this machine.
inline void RunSpmm(const SpmmFloat& op, uint32_t begin, uint32_t end) {
  BestLoops<SpmmLoops>().of_float(op, begin, end);
}
inline void RunSpmm(const SpmmHalf& op, uint32_t begin, uint32_t end) {
  BestLoops<SpmmLoops>().of_half(op, begin, end);
}
inline void RunSpmm(const SpmmDouble& op, uint32_t begin, uint32_t end) {
  BestLoops<SpmmLoops>().of_double(op, begin, end);
}
inline void RunSpmm(const SpmmBfloat16& op, uint32_t begin, uint32_t end) {
  BestLoops<SpmmLoops>().of_bfloat16(op, begin, end);
}
inline void RunSpmm(const SpmmFloatToBfloat16& op, uint32_t begin, uint32_t end) {
  BestLoops<SpmmLoops>().of_float_to_bfloat16(op, begin, end);
}
inline void RunSpmm(const SpmmHalfToBfloat16& op, uint32_t begin, uint32_t end) {
  BestLoops<SpmmLoops>().of_half_to_bfloat16(op, begin, end);
}

}  // namespace gnnd
