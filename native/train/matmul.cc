#include "train/matmul.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <c10/util/Exception.h>
#include <cblas.h>

#include <algorithm>
#include <mutex>

#include "train/parallel.h"

namespace gnnd {
namespace {

// Rows or columns of `out` below which another thread does not pay.
constexpr uint32_t kGrain = 64;

// A matrix as BLAS takes it.
struct Operand {
  explicit Operand(const at::Tensor& matrix)
      : data(matrix.const_data_ptr<float>()),
        // A single row or column has strides that say nothing.
        transposed(matrix.stride(1) != 1 && matrix.size(1) != 1) {
    const int64_t across = transposed ? 0 : 1;  // the contiguous dimension
    TORCH_CHECK(matrix.stride(across) == 1 || matrix.size(across) == 1,
                "a matrix has neither contiguous rows nor contiguous columns");
    const int64_t least = std::max<int64_t>(1, matrix.size(across));
    TORCH_CHECK(matrix.stride(1 - across) >= least || matrix.size(1 - across) <= 1,
                "a matrix has rows or columns that overlap");
    stride = static_cast<blasint>(std::max(matrix.stride(1 - across), least));
  }

  const float* At(int64_t row, int64_t column) const {
    return transposed ? data + column * stride + row : data + row * stride + column;
  }
  CBLAS_TRANSPOSE order() const { return transposed ? CblasTrans : CblasNoTrans; }

  const float* data;
  bool transposed;
  blasint stride;
};

void MatMulFloat(const at::Tensor& a, const at::Tensor& b, bool add, const at::Tensor& out) {
  static std::once_flag once;  // its own threads would compete with OpenMP's
  std::call_once(once, [] { scipy_openblas_set_num_threads(1); });
  const Operand left(a);
  const Operand right(b);
  float* to = out.data_ptr<float>();
  const auto rows = static_cast<uint32_t>(out.size(0));
  const auto columns = static_cast<uint32_t>(out.size(1));
  const auto inner = static_cast<blasint>(a.size(1));
  const auto part = [&](uint32_t row, uint32_t num_rows, uint32_t column, uint32_t num_columns) {
    scipy_cblas_sgemm(CblasRowMajor, left.order(), right.order(), static_cast<blasint>(num_rows),
                      static_cast<blasint>(num_columns), inner, 1.0F, left.At(row, 0), left.stride,
                      right.At(0, column), right.stride, add ? 1.0F : 0.0F,
                      to + uint64_t{row} * columns + column, static_cast<blasint>(columns));
  };
  if (rows >= columns) {
    ParallelRows(rows, kGrain,
                 [&](uint32_t begin, uint32_t end) { part(begin, end - begin, 0, columns); });
  } else {
    ParallelRows(columns, kGrain,
                 [&](uint32_t begin, uint32_t end) { part(0, rows, begin, end - begin); });
  }
}

}  // namespace

void MatMul(const at::Tensor& a, const at::Tensor& b, bool add, const at::Tensor& out) {
  TORCH_CHECK(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0) && out.is_contiguous() &&
                  out.size(0) == a.size(0) && out.size(1) == b.size(1),
              "matrices of a product do not fit");
  if (a.scalar_type() == at::kFloat) return MatMulFloat(a, b, add, out);
  at::Tensor target = out;
  if (add) {
    target.addmm_(a, b);
  } else {
    at::mm_out(target, a, b);
  }
}

}  // namespace gnnd
