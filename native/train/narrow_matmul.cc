#include "train/narrow_matmul.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/bfloat16.h"
#include "core/vec/convert.h"
#include "train/narrow_product.h"
#include "train/parallel.h"

namespace gnnd {
namespace {

const Bfloat16* NarrowData(const at::Tensor& matrix) {
  TORCH_CHECK(matrix.scalar_type() == at::kBFloat16 && matrix.dim() == 2 && matrix.is_contiguous(),
              "a matrix is not bfloat16 rows one behind the other");
  return reinterpret_cast<const Bfloat16*>(matrix.const_data_ptr<at::BFloat16>());
}

// `rows` rows of `columns`, filled up to `height` rows with zeros where they are fewer.
const Bfloat16* FilledUp(const Bfloat16* from, uint32_t rows, uint64_t columns, uint32_t height,
                         std::vector<Bfloat16>* scratch) {
  if (rows == height) return from;
  scratch->assign(height * columns, Bfloat16{});
  std::memcpy(scratch->data(), from, rows * columns * sizeof(Bfloat16));
  return scratch->data();
}

// Columns [column, column + width) of `rows` rows of `columns`, one behind the other and filled up
// as above.
const Bfloat16* PanelOf(const Bfloat16* from, uint32_t rows, uint64_t columns, uint64_t column,
                        uint64_t width, uint32_t height, std::vector<Bfloat16>* scratch) {
  if (width == columns) return FilledUp(from, rows, columns, height, scratch);
  scratch->resize(height * width);
  for (uint64_t r = 0; r < rows; ++r) {
    std::memcpy(scratch->data() + r * width, from + r * columns + column, width * sizeof(Bfloat16));
  }
  std::fill(scratch->begin() + static_cast<int64_t>(rows * width), scratch->end(), Bfloat16{});
  return scratch->data();
}

// The operand of one product: rows, and weights as the product's kernel wants them.
struct Factor {
  const Bfloat16* x;
  uint64_t in;
  const void* packed;
};

Factor FactorOf(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& to,
                Workspace* workspace) {
  TORCH_CHECK(
      x.size(1) == weight.size(1) && x.size(0) == to.size(0) && weight.size(0) == to.size(1),
      "matrices of a product do not fit");
  TORCH_CHECK(weight.scalar_type() == at::kFloat, "weights are not float32");
  const bool transposed = weight.stride(1) != 1 && weight.size(1) != 1;
  TORCH_CHECK((transposed ? weight.t() : weight).is_contiguous(), "weights are not contiguous");
  const auto in = static_cast<uint64_t>(weight.size(1));
  const auto out = static_cast<uint64_t>(weight.size(0));
  RowProduct& product = RowProductOf(in, out);
  void* packed = workspace->Get<std::byte>(product.packed_bytes());
  product.Pack(weight.const_data_ptr<float>(), /*out_by_in=*/!transposed, packed);
  return {NarrowData(x), in, packed};
}

// How sums become rows of `out`.
struct Finish {
  const float* bias;   // [columns] or null
  const void* addend;  // like `out`, or null
  void* out;
  uint64_t columns;
  bool narrow;

  void Row(uint64_t row, float* sum, std::vector<float>* scratch) const {
    if (addend != nullptr) {
      const float* more = static_cast<const float*>(addend) + row * columns;
      if (narrow) {
        scratch->resize(columns);
        Convert(static_cast<const Bfloat16*>(addend) + row * columns, columns, scratch->data());
        more = scratch->data();
      }
      for (uint64_t c = 0; c < columns; ++c) sum[c] += more[c];
    }
    for (uint64_t c = 0; bias != nullptr && c < columns; ++c) sum[c] += bias[c];
    if (narrow) {
      Convert(sum, columns, static_cast<Bfloat16*>(out) + row * columns);
    } else {
      std::memcpy(static_cast<float*>(out) + row * columns, sum, columns * sizeof(float));
    }
  }
};

}  // namespace

void RunNarrowAffine(const NarrowAffine& op, Workspace* workspace) {
  std::vector<Factor> factors = {FactorOf(op.x, op.weight, op.out, workspace)};
  if (op.x_self.defined()) {
    factors.push_back(FactorOf(op.x_self, op.weight_self, op.out, workspace));
  }
  const auto rows = static_cast<uint32_t>(op.out.size(0));
  const auto columns = static_cast<uint64_t>(op.out.size(1));
  TORCH_CHECK(op.out.is_contiguous(), "a product's rows do not lie one behind the other");
  const bool narrow = op.out.scalar_type() == at::kBFloat16;
  TORCH_CHECK(
      !op.addend.defined() || (op.addend.scalar_type() == op.out.scalar_type() &&
                               op.addend.is_contiguous() && op.addend.sizes() == op.out.sizes()),
      "an addend is not like the rows that it is added to");
  const Finish finish{op.bias.defined() ? op.bias.const_data_ptr<float>() : nullptr,
                      op.addend.defined() ? op.addend.const_data_ptr() : nullptr, op.out.data_ptr(),
                      columns, narrow};
  const uint32_t stretches = (rows + kProductRows - 1) / kProductRows;
  ParallelRows(stretches, 1, [&](uint32_t begin, uint32_t end) {
    thread_local std::vector<float> sums;
    thread_local std::vector<float> scratch;
    thread_local std::vector<Bfloat16> filled;
    sums.resize(kProductRows * columns);
    for (uint32_t s = begin; s < end; ++s) {
      const uint32_t first = s * kProductRows;
      const uint32_t height = std::min(kProductRows, rows - first);
      for (size_t f = 0; f < factors.size(); ++f) {
        const Factor& factor = factors[f];
        const Bfloat16* x =
            FilledUp(factor.x + first * factor.in, height, factor.in, kProductRows, &filled);
        RowProductOf(factor.in, columns).Run(x, factor.packed, /*add=*/f > 0, sums.data());
      }
      for (uint32_t r = 0; r < height; ++r) {
        finish.Row(first + r, sums.data() + r * columns, &scratch);
      }
    }
  });
}

void NarrowTransposedProduct(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& out) {
  const Bfloat16* left = NarrowData(grad);
  const Bfloat16* right = NarrowData(x);
  const auto rows = static_cast<uint32_t>(grad.size(0));
  const auto height = static_cast<uint64_t>(grad.size(1));
  const auto width = static_cast<uint64_t>(x.size(1));
  TORCH_CHECK(x.size(0) == rows && out.scalar_type() == at::kFloat && out.is_contiguous() &&
                  static_cast<uint64_t>(out.numel()) == height * width,
              "matrices of a product do not fit");
  float* to = out.data_ptr<float>();
  if (rows == 0) std::fill_n(to, height * width, 0.0F);
  // A thread has some rows of the result, in whole stretches that do not depend on how many threads
  // there are.
  const auto parts = static_cast<uint32_t>((height + kTransposedHeight - 1) / kTransposedHeight);
  ParallelRows(parts, 1, [&](uint32_t begin, uint32_t end) {
    thread_local std::vector<Bfloat16> filled_left;
    thread_local std::vector<Bfloat16> filled_right;
    for (uint32_t part = begin; part < end; ++part) {
      const uint64_t at = uint64_t{part} * kTransposedHeight;
      const uint64_t high = std::min<uint64_t>(kTransposedHeight, height - at);
      TransposedProduct& product = TransposedProductOf(high, width);
      for (uint32_t first = 0; first < rows; first += kTransposedRows) {
        const uint32_t deep = std::min(kTransposedRows, rows - first);
        const Bfloat16* a =
            PanelOf(left + first * height, deep, height, at, high, kTransposedRows, &filled_left);
        const Bfloat16* b =
            FilledUp(right + first * width, deep, width, kTransposedRows, &filled_right);
        product.Run(a, b, /*add=*/first > 0, to + at * width);
      }
    }
  });
}

}  // namespace gnnd
