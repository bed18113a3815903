#pragma once

#include <cstdint>
#include <memory>

#include "core/base/bfloat16.h"

namespace gnnd {

// Kernels of narrow_matmul.h, of fixed shapes: each is made once per shape and calling thread, and
// runs on that thread alone.

// Rows of x that one product takes.
inline constexpr uint32_t kProductRows = 256;

// sums = x w^T, or sums += x w^T: x is [kProductRows, in], w [out, in], sums [kProductRows, out].
class RowProduct {
 public:
  virtual ~RowProduct() = default;
  // Of the memory that holds w as the kernel reads it: the same for every thread.
  virtual uint64_t packed_bytes() const = 0;
  // `weight` is [out, in], or [in, out] when not `out_by_in`; rounded to bfloat16.
  virtual void Pack(const float* weight, bool out_by_in, void* packed) = 0;
  virtual void Run(const Bfloat16* x, const void* packed, bool add, float* sums) = 0;
};
RowProduct& RowProductOf(uint64_t in, uint64_t out);

// For processors without products of bfloat16: of what is widened again.
std::unique_ptr<RowProduct> WidenedRowProductOf(uint64_t in, uint64_t out);

// Rows that one product sums over, and columns of the left matrix that it takes.
inline constexpr uint32_t kTransposedRows = 1024;
inline constexpr uint32_t kTransposedHeight = 128;

// out = a^T b, or out += a^T b: a is [kTransposedRows, height], b [kTransposedRows, width], out
// [height, width].
class TransposedProduct {
 public:
  virtual ~TransposedProduct() = default;
  virtual void Run(const Bfloat16* a, const Bfloat16* b, bool add, float* out) = 0;
};
TransposedProduct& TransposedProductOf(uint64_t height, uint64_t width);
std::unique_ptr<TransposedProduct> WidenedTransposedProductOf(uint64_t height, uint64_t width);

}  // namespace gnnd
