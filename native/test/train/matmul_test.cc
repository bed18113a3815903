#include "train/matmul.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

namespace gnnd {
namespace {

at::Tensor Random(int64_t rows, int64_t columns, std::mt19937_64* random) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  const at::Tensor values = at::empty({rows, columns}, at::kFloat);
  for (int64_t i = 0; i < values.numel(); ++i) values.data_ptr<float>()[i] = uniform(*random);
  return values;
}

// Some matrix of that shape: rows of a larger one, columns contiguous or rows.
at::Tensor AnyLayout(int64_t rows, int64_t columns, std::mt19937_64* random) {
  if ((*random)() % 2 == 0) return Random(rows + 3, columns, random).narrow(0, 2, rows);
  return Random(columns + 2, rows, random).narrow(0, 1, columns).t();
}

double Expected(const at::Tensor& a, const at::Tensor& b, int64_t row, int64_t column) {
  double sum = 0;
  for (int64_t k = 0; k < a.size(1); ++k) {
    sum += double{a[row][k].item<float>()} * double{b[k][column].item<float>()};
  }
  return sum;
}

TEST_CASE("products of every layout and size are those of their definition") {
  const uint64_t seed = 31;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    for (uint32_t round = 0; round < 60; ++round) {
      const auto rows = static_cast<int64_t>(random() % (round % 10 == 0 ? 300 : 20) + 1);
      const auto inner = static_cast<int64_t>(random() % 20 + 1);
      const auto columns = static_cast<int64_t>(random() % (round % 10 == 5 ? 300 : 20) + 1);
      CAPTURE(rows);
      CAPTURE(inner);
      CAPTURE(columns);
      const at::Tensor a = AnyLayout(rows, inner, &random);
      const at::Tensor b = AnyLayout(inner, columns, &random);
      // What stood there must not matter, or be added to.
      const at::Tensor out =
          at::full({rows, columns}, std::numeric_limits<float>::quiet_NaN(), at::kFloat);
      MatMul(a, b, /*add=*/false, out);
      const at::Tensor sum = at::full({rows, columns}, 0.5, at::kFloat);
      MatMul(a, b, /*add=*/true, sum);
      double worst = 0;
      for (int64_t r = 0; r < rows; r += 7) {
        for (int64_t c = 0; c < columns; c += 5) {
          const double expected = Expected(a, b, r, c);
          worst = std::max(worst, std::abs(double{out[r][c].item<float>()} - expected));
          worst = std::max(worst, std::abs(double{sum[r][c].item<float>()} - expected - 0.5));
        }
      }
      CHECK(worst < 1e-5);
    }
  }
  at::set_num_threads(1);
}

TEST_CASE("matrices that do not fit, or whose rows overlap, are refused") {
  std::mt19937_64 random(7);
  const at::Tensor a = Random(4, 3, &random);
  const at::Tensor out = at::empty({4, 5}, at::kFloat);
  CHECK_THROWS_AS(MatMul(a, Random(4, 5, &random), false, out), c10::Error);
  CHECK_THROWS_AS(MatMul(a, Random(3, 4, &random), false, out), c10::Error);
  const at::Tensor expanded = Random(1, 3, &random).expand({4, 3});
  CHECK_THROWS_AS(MatMul(expanded, Random(3, 5, &random), false, out), c10::Error);
}

}  // namespace
}  // namespace gnnd
