#include "train/ops/affine.h"

#include <ATen/ops/mm.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "core/base/bfloat16.h"
#include "core/vec/convert.h"
#include "train/ops/parallel.h"
#include "train/ops/product.h"

namespace gnnd {
namespace {

template <typename T>
constexpr at::ScalarType kScalar = std::is_same_v<T, float> ? at::kFloat : at::kBFloat16;

template <typename T>
const T* RowsOf(const at::Tensor& matrix) {
  TORCH_CHECK(matrix.scalar_type() == kScalar<T> && matrix.dim() == 2 && matrix.is_contiguous(),
              "a matrix is not rows of the other operand's type, one behind the other");
  return static_cast<const T*>(matrix.const_data_ptr());
}

// Columns [column, column + width) of `rows` rows of `columns`, packed, and padded with zero rows
// up to `height`.
template <typename T>
const T* FilledUp(const T* from, uint32_t rows, uint64_t columns, uint64_t column, uint64_t width,
                  uint32_t height, std::vector<T>* scratch) {
  scratch->assign(height * width, T{});
  for (uint64_t r = 0; r < rows; ++r) {
    std::memcpy(scratch->data() + r * width, from + r * columns + column, width * sizeof(T));
  }
  return scratch->data();
}

// The rows of a matrix as products take them: whole stretches of `most`, then as many whole steps
// as fit, then the rest, which is padded to a step.
struct Stretch {
  uint32_t first;
  uint32_t rows;    // rows of the matrix
  uint32_t height;  // rows of the product
};
std::vector<Stretch> StretchesOf(uint32_t rows, uint32_t most, uint32_t step) {
  std::vector<Stretch> stretches;
  for (uint32_t first = 0; first < rows;) {
    const uint32_t left = rows - first;
    const uint32_t whole = std::min(most, left / step * step);
    stretches.push_back({first, whole == 0 ? left : whole, whole == 0 ? step : whole});
    first += stretches.back().rows;
  }
  return stretches;
}

// Up to this many rows are taken in lower stretches, so that more threads have work.
constexpr uint32_t kFewRows = 2048;

// The operands of one product: rows, and weights in the kernel's form.
template <typename T>
struct Factor {
  const T* x;
  const float* weight;
  uint64_t in;
  uint64_t out;
  bool out_by_in;  // layout of the weights
  void* packed;
  uint32_t rows_step;

  void Pack() const { RowProductOf<T>(in, out, kProductRows).Pack(weight, out_by_in, packed); }
};

template <typename T>
Factor<T> FactorOf(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& to,
                   Workspace* workspace) {
  TORCH_CHECK(x.dim() == 2 && weight.dim() == 2 && x.size(1) == weight.size(1) &&
                  x.size(0) == to.size(0) && weight.size(0) == to.size(1),
              "matrices of a product do not fit");
  TORCH_CHECK(weight.scalar_type() == at::kFloat, "weights are not float32");
  const bool transposed = weight.stride(1) != 1 && weight.size(1) != 1;
  TORCH_CHECK((transposed ? weight.t() : weight).is_contiguous(), "weights are not contiguous");
  const auto in = static_cast<uint64_t>(weight.size(1));
  const auto out = static_cast<uint64_t>(weight.size(0));
  RowProduct<T>& product = RowProductOf<T>(in, out, kProductRows);
  return {RowsOf<T>(x),
          weight.const_data_ptr<float>(),
          in,
          out,
          /*out_by_in=*/!transposed,
          workspace->Get<std::byte>(product.packed_bytes()),
          product.rows_step()};
}

template <typename T, typename Out>
class Affine {
 public:
  Affine(const AffineOp& op, Workspace* workspace)
      : columns_(static_cast<uint64_t>(op.out.size(1))),
        bias_(op.bias.defined() ? op.bias.const_data_ptr<float>() : nullptr),
        addend_(op.addend.defined() ? RowsOf<Out>(op.addend) : nullptr),
        out_(static_cast<Out*>(op.out.data_ptr())) {
    factors_.push_back(FactorOf<T>(op.x, op.weight, op.out, workspace));
    if (op.x_self.defined()) {
      factors_.push_back(FactorOf<T>(op.x_self, op.weight_self, op.out, workspace));
    }
    ParallelTasks(static_cast<uint32_t>(factors_.size()),
                  [this](uint32_t factor) { factors_[factor].Pack(); });
  }

  std::vector<Stretch> Stretches(uint32_t rows) const {
    uint32_t step = 1;
    for (const Factor<T>& factor : factors_) step = std::max(step, factor.rows_step);
    const uint32_t most = rows <= kFewRows ? kProductRows / 2 : kProductRows;
    return StretchesOf(rows, std::max(most, step), step);
  }

  void Run(const Stretch& stretch) const {
    thread_local std::vector<float> scratch;
    thread_local std::vector<T> filled;
    const uint64_t at = stretch.first * columns_;
    const uint64_t count = stretch.rows * columns_;
    float* sums = nullptr;
    if constexpr (std::is_same_v<Out, float>) {
      if (stretch.rows == stretch.height) sums = out_ + at;
    }
    if (sums == nullptr) {
      scratch.assign(stretch.height * columns_, 0.0F);
      sums = scratch.data();
    }
    if (addend_ != nullptr) Copy(addend_ + at, count, sums);
    for (size_t f = 0; f < factors_.size(); ++f) {
      const uint64_t in = factors_[f].in;
      const T* x = factors_[f].x + stretch.first * in;
      if (stretch.rows != stretch.height) {
        x = FilledUp(x, stretch.rows, in, 0, in, stretch.height, &filled);
      }
      RowProductOf<T>(in, columns_, stretch.height)
          .Run(x, factors_[f].packed, /*add=*/addend_ != nullptr || f > 0, sums);
    }
    for (uint32_t r = 0; bias_ != nullptr && r < stretch.rows; ++r) {
      for (uint64_t c = 0; c < columns_; ++c) sums[r * columns_ + c] += bias_[c];
    }
    Copy(sums, count, out_ + at);
  }

 private:
  template <typename From, typename To>
  static void Copy(const From* from, uint64_t count, To* to) {
    if constexpr (!std::is_same_v<From, To>) {
      Convert(from, count, to);
    } else if (from != to) {
      std::memcpy(to, from, count * sizeof(To));
    }
  }

  uint64_t columns_;
  std::vector<Factor<T>> factors_;
  const float* bias_;
  const Out* addend_;
  Out* out_;
};

template <typename T, typename Out>
void RunStretches(const AffineOp& op, Workspace* workspace) {
  const Affine<T, Out> affine(op, workspace);
  const std::vector<Stretch> stretches = affine.Stretches(static_cast<uint32_t>(op.out.size(0)));
  ParallelTasks(static_cast<uint32_t>(stretches.size()),
                [&](uint32_t s) { affine.Run(stretches[s]); });
}

void RunOnTorch(const AffineOp& op) {
  at::Tensor sum = op.x.mm(op.weight.t());
  if (op.x_self.defined()) sum.addmm_(op.x_self, op.weight_self.t());
  if (op.addend.defined()) sum.add_(op.addend);
  if (op.bias.defined()) sum.add_(op.bias);
  op.out.copy_(sum);
}

// The sum over all rows, in which a thread computes a part of the left columns and of the rows.
template <typename T>
class TransposedSum {
 public:
  TransposedSum(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& out)
      : left_(RowsOf<T>(grad)),
        right_(RowsOf<T>(x)),
        height_(static_cast<uint64_t>(grad.size(1))),
        width_(static_cast<uint64_t>(x.size(1))),
        out_(out.data_ptr<float>()),
        stretches_(StretchesOf(static_cast<uint32_t>(x.size(0)),
                               x.size(0) <= kFewRows ? kTransposedRows / 4 : kTransposedRows,
                               kTransposedRowsStep)) {}

  void Run() {
    const auto num_stretches = static_cast<uint32_t>(stretches_.size());
    if (num_stretches == 0) return static_cast<void>(std::fill_n(out_, height_ * width_, 0.0F));
    const auto parts = static_cast<uint32_t>((height_ + kTransposedHeight - 1) / kTransposedHeight);
    const uint32_t groups = std::min(kGroups, (num_stretches + 1) / 2);
    thread_local std::vector<float> sums;  // sums of all groups but the first, whose sums are `out`
    sums.resize((groups - 1) * height_ * width_);
    float* others = sums.data();
    const auto of_group = [&](uint32_t group) {
      return group == 0 ? out_ : others + (group - 1) * height_ * width_;
    };
    ParallelTasks(parts * groups, [&](uint32_t task) {
      const uint32_t group = task / parts;
      SumPart(task % parts, num_stretches * group / groups, num_stretches * (group + 1) / groups,
              of_group(group));
    });
    if (groups == 1) return;
    ParallelRows(static_cast<uint32_t>(height_), kRowsOfSums, [&](uint32_t begin, uint32_t end) {
      for (uint32_t group = 1; group < groups; ++group) {
        const float* from = of_group(group);
        for (uint64_t i = begin * width_; i < end * width_; ++i) out_[i] += from[i];
      }
    });
  }

 private:
  // Most groups of rows that are summed in parallel.
  static constexpr uint32_t kGroups = 4;
  static constexpr uint32_t kRowsOfSums = 32;

  void SumPart(uint32_t part, uint32_t begin, uint32_t end, float* to) const {
    thread_local std::vector<T> filled_left;
    thread_local std::vector<T> filled_right;
    const uint64_t at = uint64_t{part} * kTransposedHeight;
    const uint64_t high = std::min<uint64_t>(kTransposedHeight, height_ - at);
    for (uint32_t s = begin; s < end; ++s) {
      const Stretch& stretch = stretches_[s];
      const T* a = left_ + stretch.first * height_ + at;
      const T* b = right_ + stretch.first * width_;
      TransposedShape shape{stretch.height, high, width_, height_};
      if (stretch.rows != stretch.height) {
        shape.stride = high;
        a = FilledUp(left_ + stretch.first * height_, stretch.rows, height_, at, high,
                     stretch.height, &filled_left);
        b = FilledUp(b, stretch.rows, width_, 0, width_, stretch.height, &filled_right);
      }
      TransposedProductOf<T>(shape).Run(a, b, /*add=*/s > begin, to + at * width_);
    }
  }

  const T* left_;
  const T* right_;
  uint64_t height_;
  uint64_t width_;
  float* out_;
  std::vector<Stretch> stretches_;
};

}  // namespace

void RunAffine(const AffineOp& op, Workspace* workspace) {
  TORCH_CHECK(op.out.is_contiguous(), "a product's rows do not lie one behind the other");
  TORCH_CHECK(!op.addend.defined() || op.addend.sizes() == op.out.sizes(),
              "an addend is not like the rows that it is added to");
  if (op.x.scalar_type() == at::kDouble) return RunOnTorch(op);
  if (op.x.scalar_type() == at::kFloat) return RunStretches<float, float>(op, workspace);
  if (op.out.scalar_type() == at::kFloat) return RunStretches<Bfloat16, float>(op, workspace);
  RunStretches<Bfloat16, Bfloat16>(op, workspace);
}

void TransposedProductInto(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& out) {
  TORCH_CHECK(grad.dim() == 2 && x.dim() == 2 && grad.size(0) == x.size(0) && out.is_contiguous() &&
                  out.size(0) == grad.size(1) && out.size(1) == x.size(1),
              "matrices of a product do not fit");
  if (x.scalar_type() == at::kDouble) {
    at::Tensor target = out;
    at::mm_out(target, grad.t(), x);
    return;
  }
  TORCH_CHECK(out.scalar_type() == at::kFloat, "sums of a product are not float32");
  if (x.scalar_type() == at::kFloat) return TransposedSum<float>(grad, x, out).Run();
  TransposedSum<Bfloat16>(grad, x, out).Run();
}

}  // namespace gnnd
