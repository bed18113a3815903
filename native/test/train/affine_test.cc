#include "train/ops/affine.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/base/cpu.h"
#include "train/ops/parallel.h"
#include "train/ops/product.h"

namespace gnnd {
namespace {

at::Tensor Random(int64_t rows, int64_t columns, std::mt19937_64* random) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  const at::Tensor values = at::empty({rows, columns}, at::kFloat);
  for (int64_t i = 0; i < values.numel(); ++i) values.data_ptr<float>()[i] = uniform(*random);
  return values;
}

// The product of the operands, rounded to `type`, computed in float64.
at::Tensor Exact(at::ScalarType type, const at::Tensor& a, const at::Tensor& b) {
  return a.to(type).to(at::kDouble).mm(b.to(type).to(at::kDouble));
}

double Worst(const at::Tensor& found, const at::Tensor& expected) {
  return found.to(at::kDouble).sub(expected).abs().max().item<double>();
}

struct Sizes {
  int64_t rows;
  int64_t in;
  int64_t in_self;
  int64_t out;
};

// More and less than a stretch of rows, whole ones and steps of them; lengths that fill no vector.
constexpr Sizes kSizes[] = {{1, 1, 1, 1},         {3, 7, 5, 2},          {255, 100, 64, 44},
                            {256, 128, 128, 256}, {700, 33, 100, 130},   {2100, 17, 9, 300},
                            {5333, 40, 10, 24},   {1024, 1433, 602, 33}, {96, 300, 257, 47}};

// The types of the operands and of the result.
struct Types {
  at::ScalarType in;
  at::ScalarType out;
};
constexpr Types kTypes[] = {
    {at::kFloat, at::kFloat}, {at::kBFloat16, at::kFloat}, {at::kBFloat16, at::kBFloat16}};

AffineOp OpOf(const Sizes& sizes, const Types& types, std::mt19937_64* random) {
  AffineOp op;
  op.x = Random(sizes.rows, sizes.in, random).to(types.in);
  op.weight = Random(sizes.out, sizes.in, random);
  op.x_self = Random(sizes.rows, sizes.in_self, random).to(types.in);
  op.weight_self = Random(sizes.in_self, sizes.out, random).t();
  op.addend = Random(sizes.rows, sizes.out, random).to(types.out);
  op.bias = Random(1, sizes.out, random).view({sizes.out});
  op.out = at::empty({sizes.rows, sizes.out}, types.out);
  return op;
}

TEST_CASE("rows times weights are the exact product of the rounded operands, rounded once") {
  const uint64_t seed = 5;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (const Types& types : kTypes) {
    for (const Sizes& sizes : kSizes) {
      CAPTURE(sizes.rows);
      CAPTURE(sizes.out);
      AffineOp op = OpOf(sizes, types, &random);
      Workspace workspace;
      RunAffine(op, &workspace);
      const at::Tensor expected = Exact(types.in, op.x, op.weight.t())
                                      .add(Exact(types.in, op.x_self, op.weight_self.t()))
                                      .add(op.addend.to(at::kDouble))
                                      .add(op.bias.to(at::kDouble));
      const double largest = std::max(1.0, expected.abs().max().item<double>());
      const double tolerance = types.out == at::kFloat ? 1e-5 : 1.0 / 256;
      CHECK(Worst(op.out, expected) < tolerance * largest);
      // Rows that are added to themselves.
      const at::Tensor apart = op.out.clone();
      op.out = op.addend;
      RunAffine(op, &workspace);
      CHECK(at::equal(op.out, apart));
    }
  }
}

TEST_CASE("a product alone adds to nothing that stood there") {
  std::mt19937_64 random(10);
  for (const Types& types : kTypes) {
    AffineOp op = OpOf({300, 20, 1, 30}, types, &random);
    op.x_self = op.weight_self = op.addend = op.bias = at::Tensor();
    op.out.fill_(std::numeric_limits<float>::quiet_NaN());
    Workspace workspace;
    RunAffine(op, &workspace);
    CHECK(Worst(op.out, Exact(types.in, op.x, op.weight.t())) < 0.05);
  }
}

TEST_CASE("a product does not depend on the number of threads") {
  std::mt19937_64 random(6);
  for (const Types& types : kTypes) {
    for (const Sizes& sizes : kSizes) {
      CAPTURE(sizes.rows);
      AffineOp op = OpOf(sizes, types, &random);
      Workspace workspace;
      RunAffine(op, &workspace);
      const at::Tensor alone = op.out;
      for (const uint32_t threads : {2U, 3U}) {
        UseTeamOf(threads);
        op.out = at::empty_like(alone);
        RunAffine(op, &workspace);
        CHECK(at::equal(op.out, alone));
      }
      UseTeamOf(1);
    }
  }
}

// The last bits of AVX2 kernels' products follow where a row lies, which decision 0038 names and
// nothing relies on: there this case tells what differs and does not fail.
bool IsAvx2Alone() { return DetectInstructionSet() == InstructionSet::kAvx2; }

TEST_CASE("a row's product depends on its own row alone, whatever the number of rows" *
          doctest::may_fail(IsAvx2Alone())) {
  std::mt19937_64 random(6);
  for (const Types& types : kTypes) {
    for (const Sizes& sizes : kSizes) {
      CAPTURE(sizes.rows);
      AffineOp op = OpOf(sizes, types, &random);
      Workspace workspace;
      RunAffine(op, &workspace);
      const at::Tensor alone = op.out;
      const AffineOp whole = op;
      for (const int64_t first : {sizes.rows / 2, sizes.rows / 3}) {
        const int64_t rows = sizes.rows - first;
        op.x = whole.x.narrow(0, first, rows);
        op.x_self = whole.x_self.narrow(0, first, rows);
        op.addend = whole.addend.narrow(0, first, rows);
        op.out = at::empty({rows, sizes.out}, types.out);
        RunAffine(op, &workspace);
        CHECK(at::equal(op.out, alone.narrow(0, first, rows)));
      }
    }
  }
}

TEST_CASE("a parameter's gradient is the sum over all rows, whatever the number of threads") {
  std::mt19937_64 random(7);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const Sizes& sizes : kSizes) {
      CAPTURE(sizes.rows);
      const at::Tensor grad = Random(sizes.rows, sizes.out, &random).to(type);
      const at::Tensor x = Random(sizes.rows, sizes.in, &random).to(type);
      const at::Tensor out =
          at::full({sizes.out, sizes.in}, std::numeric_limits<float>::quiet_NaN(), at::kFloat);
      TransposedProductInto(grad, x, out);
      CHECK(Worst(out, Exact(type, grad.t(), x)) < 2e-4);
      for (const uint32_t threads : {2U, 3U}) {
        UseTeamOf(threads);
        const at::Tensor again = at::empty_like(out);
        TransposedProductInto(grad, x, again);
        CHECK(at::equal(again, out));
      }
      UseTeamOf(1);
    }
    const at::Tensor none = at::full({3, 2}, 1.0, at::kFloat);
    TransposedProductInto(at::empty({0, 3}, type), at::empty({0, 2}, type), none);
    CHECK(none.abs().max().item<float>() == 0.0F);
  }
}

template <typename T>
const T* RowsOf(const at::Tensor& matrix) {
  return static_cast<const T*>(matrix.const_data_ptr());
}

template <typename T>
at::Tensor Twice(RowProduct<T>* product, const at::Tensor& x, const at::Tensor& weight) {
  std::vector<std::byte> packed(product->packed_bytes() + 64);
  void* aligned = packed.data() + (64 - reinterpret_cast<uintptr_t>(packed.data()) % 64);
  product->Pack(weight.const_data_ptr<float>(), true, aligned);
  const at::Tensor sums = at::empty({x.size(0), weight.size(0)}, at::kFloat);
  product->Run(RowsOf<T>(x), aligned, false, sums.data_ptr<float>());
  product->Run(RowsOf<T>(x), aligned, true, sums.data_ptr<float>());
  return sums;
}

template <typename T>
void CheckLibrary(MatrixLibrary library, at::ScalarType type) {
  std::mt19937_64 random(8);
  for (const uint64_t in : {1, 44, 100, 256}) {
    const uint64_t out = 300 - in;
    for (const uint32_t rows : {32U, 96U, kProductRows}) {
      const at::Tensor x = Random(rows, static_cast<int64_t>(in), &random).to(type);
      const at::Tensor weight =
          Random(static_cast<int64_t>(out), static_cast<int64_t>(in), &random);
      const auto product = MakeRowProduct<T>(library, in, out, rows);
      if (product == nullptr) return;
      CHECK(Worst(Twice(product.get(), x, weight), Exact(type, x, weight.t()).mul(2)) < 1e-4);
    }
  }
  // The first 44 columns of rows of 50.
  const at::Tensor a = Random(kTransposedRows, 50, &random).to(type);
  const at::Tensor b = Random(kTransposedRows, 100, &random).to(type);
  const auto product = MakeTransposedProduct<T>(library, {kTransposedRows, 44, 100, 50});
  const at::Tensor found = at::empty({44, 100}, at::kFloat);
  product->Run(RowsOf<T>(a), RowsOf<T>(b), false, found.data_ptr<float>());
  product->Run(RowsOf<T>(a), RowsOf<T>(b), true, found.data_ptr<float>());
  CHECK(Worst(found, Exact(type, a.narrow(1, 0, 44).t(), b).mul(2)) < 1e-3);
}

TEST_CASE("each library's products are exact to float32's precision") {
  for (const MatrixLibrary library : {MatrixLibrary::kOneDnn, MatrixLibrary::kOpenBlas}) {
    CheckLibrary<float>(library, at::kFloat);
    CheckLibrary<Bfloat16>(library, at::kBFloat16);
  }
}

TEST_CASE("matrices of other types or shapes are refused") {
  std::mt19937_64 random(9);
  Workspace workspace;
  const auto refused = [&](const auto& spoil) {
    for (const Types& types : kTypes) {
      AffineOp op = OpOf({4, 3, 2, 5}, types, &random);
      spoil(&op);
      CHECK_THROWS_AS(RunAffine(op, &workspace), c10::Error);
    }
  };
  refused([&](AffineOp* op) { op->weight = Random(5, 4, &random); });
  refused([&](AffineOp* op) { op->x_self = op->x_self.narrow(0, 0, 3); });
  refused([&](AffineOp* op) { op->weight_self = Random(6, 2, &random); });
  refused([&](AffineOp* op) { op->weight = op->weight.to(at::kDouble); });
  refused([&](AffineOp* op) { op->addend = op->addend.narrow(0, 0, 3); });
  refused([&](AffineOp* op) { op->x_self = op->x_self.to(at::kHalf); });
  refused([&](AffineOp* op) { op->addend = op->addend.to(at::kHalf); });
  refused([&](AffineOp* op) { op->x = op->x.t().contiguous().t(); });
  const at::Tensor out = at::empty({5, 3}, at::kFloat);
  CHECK_THROWS_AS(TransposedProductInto(Random(4, 5, &random), Random(3, 3, &random), out),
                  c10::Error);
}

}  // namespace
}  // namespace gnnd
