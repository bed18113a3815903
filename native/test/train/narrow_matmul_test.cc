#include "train/narrow_matmul.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <c10/util/Exception.h>
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "train/narrow_product.h"

namespace gnnd {
namespace {

at::Tensor Random(int64_t rows, int64_t columns, std::mt19937_64* random) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  const at::Tensor values = at::empty({rows, columns}, at::kFloat);
  for (int64_t i = 0; i < values.numel(); ++i) values.data_ptr<float>()[i] = uniform(*random);
  return values;
}

at::Tensor RandomRows(int64_t rows, int64_t columns, std::mt19937_64* random) {
  return Random(rows, columns, random).to(at::kBFloat16);
}

// The product of what the operands are once they are rounded, in float64.
at::Tensor Exact(const at::Tensor& a, const at::Tensor& b) {
  return a.to(at::kBFloat16).to(at::kDouble).mm(b.to(at::kBFloat16).to(at::kDouble));
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

// More and less than a stretch of rows, and lengths that fill no vector.
constexpr Sizes kSizes[] = {{1, 1, 1, 1},         {3, 7, 5, 2},        {255, 100, 64, 44},
                            {256, 128, 128, 256}, {700, 33, 100, 130}, {2100, 17, 9, 300}};

NarrowAffine OpOf(const Sizes& sizes, bool wide, std::mt19937_64* random) {
  NarrowAffine op;
  op.x = RandomRows(sizes.rows, sizes.in, random);
  op.weight = Random(sizes.out, sizes.in, random);
  op.x_self = RandomRows(sizes.rows, sizes.in_self, random);
  op.weight_self = Random(sizes.in_self, sizes.out, random).t();
  const at::ScalarType type = wide ? at::kFloat : at::kBFloat16;
  op.addend = Random(sizes.rows, sizes.out, random).to(type);
  op.bias = Random(1, sizes.out, random).view({sizes.out});
  op.out = at::empty({sizes.rows, sizes.out}, type);
  return op;
}

TEST_CASE("rows times weights are the exact product of the rounded operands, rounded once") {
  const uint64_t seed = 5;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (const bool wide : {true, false}) {
    for (const Sizes& sizes : kSizes) {
      CAPTURE(sizes.rows);
      CAPTURE(sizes.out);
      const NarrowAffine op = OpOf(sizes, wide, &random);
      Workspace workspace;
      RunNarrowAffine(op, &workspace);
      const at::Tensor expected = Exact(op.x, op.weight.t())
                                      .add(Exact(op.x_self, op.weight_self.t()))
                                      .add(op.addend.to(at::kDouble))
                                      .add(op.bias.to(at::kDouble));
      const double largest = expected.abs().max().item<double>();
      CHECK(Worst(op.out, expected) < (wide ? 1e-5 : 1.0 / 256) * std::max(1.0, largest));
    }
  }
}

TEST_CASE("a row's product depends on its own row alone, whatever the number of threads or rows") {
  std::mt19937_64 random(6);
  for (const Sizes& sizes : kSizes) {
    CAPTURE(sizes.rows);
    NarrowAffine op = OpOf(sizes, true, &random);
    Workspace workspace;
    RunNarrowAffine(op, &workspace);
    const at::Tensor alone = op.out;
    at::set_num_threads(2);
    op.out = alone.clone();
    RunNarrowAffine(op, &workspace);
    at::set_num_threads(1);
    CHECK(at::equal(op.out, alone));
    const int64_t half = (sizes.rows + 1) / 2;
    op.x = op.x.narrow(0, 0, half);
    op.x_self = op.x_self.narrow(0, 0, half);
    op.addend = op.addend.narrow(0, 0, half);
    op.out = at::empty({half, sizes.out}, at::kFloat);
    RunNarrowAffine(op, &workspace);
    CHECK(at::equal(op.out, alone.narrow(0, 0, half)));
  }
}

TEST_CASE("a parameter's gradient is the sum over all rows, whatever the number of threads") {
  std::mt19937_64 random(7);
  for (const Sizes& sizes : kSizes) {
    CAPTURE(sizes.rows);
    const at::Tensor grad = RandomRows(sizes.rows, sizes.out, &random);
    const at::Tensor x = RandomRows(sizes.rows, sizes.in, &random);
    const at::Tensor out = at::empty({sizes.out, sizes.in}, at::kFloat);
    NarrowTransposedProduct(grad, x, out);
    CHECK(Worst(out, Exact(grad.t(), x)) < 1e-4);
    at::set_num_threads(2);
    const at::Tensor again = out.clone();
    NarrowTransposedProduct(grad, x, again);
    at::set_num_threads(1);
    CHECK(at::equal(again, out));
  }
  const at::Tensor none = at::empty({3, 2}, at::kFloat);
  NarrowTransposedProduct(RandomRows(0, 3, &random), RandomRows(0, 2, &random), none);
  CHECK(none.abs().max().item<float>() == 0.0F);
}

const Bfloat16* RowsOf(const at::Tensor& matrix) {
  return reinterpret_cast<const Bfloat16*>(matrix.const_data_ptr<at::BFloat16>());
}

TEST_CASE("widened products are those of the processor's kernels to float32's precision") {
  std::mt19937_64 random(8);
  for (const uint64_t in : {1, 44, 100, 256}) {
    const uint64_t out = 300 - in;
    const at::Tensor x = RandomRows(kProductRows, static_cast<int64_t>(in), &random);
    const at::Tensor weight = Random(static_cast<int64_t>(out), static_cast<int64_t>(in), &random);
    const auto widened = WidenedRowProductOf(in, out);
    at::Tensor sums[2];
    for (const int which : {0, 1}) {
      RowProduct& product = which == 0 ? RowProductOf(in, out) : *widened;
      std::vector<std::byte> packed(product.packed_bytes() + 64);
      void* aligned = packed.data() + (64 - reinterpret_cast<uintptr_t>(packed.data()) % 64);
      product.Pack(weight.const_data_ptr<float>(), true, aligned);
      sums[which] = at::empty({kProductRows, static_cast<int64_t>(out)}, at::kFloat);
      product.Run(RowsOf(x), aligned, false, sums[which].data_ptr<float>());
      product.Run(RowsOf(x), aligned, true, sums[which].data_ptr<float>());
    }
    CHECK(Worst(sums[0], sums[1].to(at::kDouble)) < 1e-4);
    CHECK(Worst(sums[1], Exact(x, weight.t()).mul(2)) < 1e-4);
  }
  const at::Tensor a = RandomRows(kTransposedRows, 44, &random);
  const at::Tensor b = RandomRows(kTransposedRows, 100, &random);
  const auto widened = WidenedTransposedProductOf(44, 100);
  const at::Tensor found = at::empty({44, 100}, at::kFloat);
  widened->Run(RowsOf(a), RowsOf(b), false, found.data_ptr<float>());
  widened->Run(RowsOf(a), RowsOf(b), true, found.data_ptr<float>());
  CHECK(Worst(found, Exact(a.t(), b).mul(2)) < 1e-3);
}

TEST_CASE("matrices of other types or shapes are refused") {
  std::mt19937_64 random(9);
  Workspace workspace;
  NarrowAffine op = OpOf({4, 3, 2, 5}, true, &random);
  op.weight = Random(5, 4, &random);
  CHECK_THROWS_AS(RunNarrowAffine(op, &workspace), c10::Error);
  op = OpOf({4, 3, 2, 5}, true, &random);
  op.x_self = RandomRows(3, 2, &random);
  CHECK_THROWS_AS(RunNarrowAffine(op, &workspace), c10::Error);
  op = OpOf({4, 3, 2, 5}, true, &random);
  op.weight_self = Random(6, 2, &random);
  CHECK_THROWS_AS(RunNarrowAffine(op, &workspace), c10::Error);
  op = OpOf({4, 3, 2, 5}, true, &random);
  op.addend = Random(3, 5, &random);
  CHECK_THROWS_AS(RunNarrowAffine(op, &workspace), c10::Error);
  op = OpOf({4, 3, 2, 5}, true, &random);
  op.x = op.x.to(at::kFloat);
  CHECK_THROWS_AS(RunNarrowAffine(op, &workspace), c10::Error);
  op = OpOf({4, 3, 2, 5}, true, &random);
  op.addend = op.addend.to(at::kBFloat16);
  CHECK_THROWS_AS(RunNarrowAffine(op, &workspace), c10::Error);
  const at::Tensor out = at::empty({5, 3}, at::kFloat);
  CHECK_THROWS_AS(
      NarrowTransposedProduct(RandomRows(4, 5, &random), RandomRows(3, 3, &random), out),
      c10::Error);
}

}  // namespace
}  // namespace gnnd
