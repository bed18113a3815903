#pragma once

#include <compare>
#include <cstdint>
#include <memory>

#include "core/base/bfloat16.h"

namespace gnnd {

// Kernels of affine.h: products of one fixed shape each, made once per shape and calling thread,
// which run on that thread alone. T is what matrices are given in, float or Bfloat16; sums are
// float32.

// Rows of x that one product takes at most.
inline constexpr uint32_t kProductRows = 256;

// The library that kernels come from. On x86-64 oneDNN makes as many products as OpenBLAS or more
// (bench/README.md); elsewhere there is none.
enum class MatrixLibrary : uint32_t { kOneDnn = 1, kOpenBlas = 2 };

// GNND_MATRIX_LIBRARY, ONEDNN or OPENBLAS, which the daemon sets for a Trainer: it decides bits.
// Unset: the first that this build has.
MatrixLibrary ChosenMatrixLibrary();

// sums = x w^T, or sums += x w^T: x is [rows, in], w [out, in], sums [rows, out].
template <typename T>
class RowProduct {
 public:
  virtual ~RowProduct() = default;
  // Of the memory that holds w as the kernel reads it: the same for every thread and height.
  virtual uint64_t packed_bytes() const = 0;
  // A product of a multiple of so many rows has the bits that one of kProductRows has.
  virtual uint32_t rows_step() const = 0;
  // `weight` is [out, in], or [in, out] when not `out_by_in`; rounded to T.
  virtual void Pack(const float* weight, bool out_by_in, void* packed) = 0;
  virtual void Run(const T* x, const void* packed, bool add, float* sums) = 0;
};
// Of the chosen library where it has it for this processor, else of OpenBLAS.
template <typename T>
RowProduct<T>& RowProductOf(uint64_t in, uint64_t out, uint32_t rows);

// None where the library has only slow code for this processor, or was not there when this was
// built.
template <typename T>
std::unique_ptr<RowProduct<T>> MakeRowProduct(MatrixLibrary library, uint64_t in, uint64_t out,
                                              uint32_t rows);

// Rows that one product sums over at most, what their number is a multiple of, and columns of the
// left matrix that it takes at most.
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

// out = a^T b, or out += a^T b: a is [rows, height], b [rows, width], out [height, width].
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
