#pragma once

#include <compare>
#include <cstdint>
#include <memory>

#include "core/base/bfloat16.h"

namespace gnnd {

// Kernels of affine.h: products of one fixed shape each, made once per shape and calling thread,
// which run on that thread alone. T is the type of the matrices, float or Bfloat16; sums are
// float32.

// Most rows of x in one product.
inline constexpr uint32_t kProductRows = 256;

// The library of the kernels. On x86-64 oneDNN is at least as fast as OpenBLAS (bench/README.md);
// on other processors it is not available.
enum class MatrixLibrary : uint32_t { kOneDnn = 1, kOpenBlas = 2 };

// The library in GNND_MATRIX_LIBRARY, ONEDNN or OPENBLAS, which the daemon sets for a Trainer
// because it decides bits. If it is unset, the first library in this build.
MatrixLibrary ChosenMatrixLibrary();

// Sets sums = x w^T, or adds to sums: x is [rows, in], w [out, in], sums [rows, out].
template <typename T>
class RowProduct {
 public:
  virtual ~RowProduct() = default;
  // Size of w in the kernel's form: the same for every thread and height.
  virtual uint64_t packed_bytes() const = 0;
  // Heights that are multiples of this give the same bits as kProductRows.
  virtual uint32_t rows_step() const = 0;
  // `weight` is [out, in], or [in, out] when not `out_by_in`; rounded to T.
  virtual void Pack(const float* weight, bool out_by_in, void* packed) = 0;
  virtual void Run(const T* x, const void* packed, bool add, float* sums) = 0;
};
// The product of the chosen library, if it supports this processor, else of OpenBLAS.
template <typename T>
RowProduct<T>& RowProductOf(uint64_t in, uint64_t out, uint32_t rows);

// None if the library has only slow code for this processor, or was missing in the build.
template <typename T>
std::unique_ptr<RowProduct<T>> MakeRowProduct(MatrixLibrary library, uint64_t in, uint64_t out,
                                              uint32_t rows);

// Most rows that one product sums over, the number of which rows must be a multiple, and most
// columns of its left matrix.
inline constexpr uint32_t kTransposedRows = 1024;
inline constexpr uint32_t kTransposedRowsStep = 128;
inline constexpr uint32_t kTransposedHeight = 128;

struct TransposedShape {
  uint64_t rows;
  uint64_t height;
  uint64_t width;
  uint64_t stride;  // elements from a row of the left matrix to the next
  auto operator<=>(const TransposedShape&) const = default;
};

// Sets out = a^T b, or adds to out: a is [rows, height], b [rows, width], out [height, width].
template <typename T>
class TransposedProduct {
 public:
  virtual ~TransposedProduct() = default;
  virtual void Run(const T* a, const T* b, bool add, float* out) = 0;
};
template <typename T>
TransposedProduct<T>& TransposedProductOf(const TransposedShape& shape);
template <typename T>
std::unique_ptr<TransposedProduct<T>> MakeTransposedProduct(MatrixLibrary library,
                                                            const TransposedShape& shape);

}  // namespace gnnd
