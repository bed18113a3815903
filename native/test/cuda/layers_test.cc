#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/kernels/exp.h"
#include "core/vec/convert.h"
#include "cuda/operators.h"
#include "test/cuda/orders.h"
#include "test/cuda/values.h"

// Kernels whose twins are in train/, which links torch, beside their definitions written out: sums
// over columns in eight parts, sums over rows in groups of 64.

namespace gnnd {
namespace {

using test::Random;
using test::SameBits;

template <typename Term>
float InParts(uint32_t columns, const Term& term) {
  float sum[8] = {};
  for (uint32_t c = 0; c < columns; ++c) sum[c % 8] += term(c);
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

template <typename Term>
std::vector<float> InGroups(uint32_t rows, uint64_t width, const Term& term) {
  std::vector<float> total(width, 0.0F);
  for (uint32_t begin = 0; begin < rows; begin += 64) {
    for (uint64_t c = 0; c < width; ++c) {
      float sum = 0;
      for (uint32_t r = begin; r < std::min(rows, begin + 64); ++r) sum += term(r, c);
      total[c] += sum;
    }
  }
  return total;
}

struct Shape {
  uint32_t rows;
  uint32_t columns;
};
constexpr Shape kShapes[] = {{0, 5}, {1, 1}, {63, 8}, {64, 31}, {65, 32}, {200, 47}};

TEST_CASE("scales of means are the definition's, with weights and without") {
  for (const uint32_t rows : {0U, 1U, 90U}) {
    Random random(rows);
    std::vector<uint32_t> indptr{0};
    for (uint32_t d = 0; d < rows; ++d) indptr.push_back(indptr.back() + random.Below(6));
    const auto weight = random.Many<float>(indptr.back());
    for (const bool weighted : {false, true}) {
      std::vector<float> scale(rows);
      std::vector<float> scaled(weight.size());
      for (uint32_t d = 0; d < rows; ++d) {
        float sum = weighted ? 0.0F : static_cast<float>(indptr[d + 1] - indptr[d]);
        for (uint32_t e = indptr[d]; weighted && e < indptr[d + 1]; ++e) sum += weight[e];
        scale[d] = sum > 0.0F ? 1.0F / sum : 0.0F;
        for (uint32_t e = indptr[d]; weighted && e < indptr[d + 1]; ++e) {
          scaled[e] = scale[d] * weight[e];
        }
      }
      test::InOrders([&](uint32_t order) {
        std::vector<float> got(rows);
        std::vector<float> got_scaled(weight.size());
        cuda::MeanScales({nullptr, 1 + order},
                         {indptr.data(), weighted ? weight.data() : nullptr, rows, got.data(),
                          weighted ? got_scaled.data() : nullptr});
        CHECK(SameBits(got, scale));
        CHECK(SameBits(got_scaled, scaled));
      });
    }
  }
}

float AsFloat(float value) { return value; }
float AsFloat(Bfloat16 value) { return ToFloat(value); }

template <typename T>
void CheckSumOfRows() {
  for (const Shape& shape : kShapes) {
    const auto rows = Random(shape.rows).Many<T>(uint64_t{shape.rows} * shape.columns);
    const auto wanted = InGroups(shape.rows, shape.columns, [&](uint32_t r, uint64_t c) {
      return AsFloat(rows[r * shape.columns + c]);
    });
    test::InOrders([&](uint32_t order) {
      std::vector<float> partial(cuda::SumFloats(shape.rows, shape.columns));
      std::vector<float> got(shape.columns, 5.0F);
      cuda::SumRows({nullptr, 1 + order}, rows.data(), shape.rows, shape.columns, partial.data(),
                    got.data());
      CHECK(SameBits(got, wanted));
    });
  }
}

TEST_CASE("rows are added up in groups") {
  CheckSumOfRows<float>();
  CheckSumOfRows<Bfloat16>();
}

template <typename T, typename Scale>
void CheckDropoutGradient() {
  for (const uint32_t count : {0U, 1U, 257U, 5000U}) {
    Random random(count);
    const auto out = random.Many<T>(count);  // zeros of both signs among them
    const auto grad = random.Many<T>(count);
    std::vector<T> wanted(count);
    for (uint32_t i = 0; i < count; ++i) {
      if constexpr (std::is_same_v<T, Bfloat16>) {
        wanted[i] = ToFloat(out[i]) != 0.0F ? ToBfloat16(Scale{1.25} * ToFloat(grad[i])) : T{};
      } else {
        wanted[i] = out[i] != T{0} ? Scale{1.25} * grad[i] : T{0};
      }
    }
    test::InOrders([&](uint32_t order) {
      std::vector<T> got(count);
      cuda::DropoutGradient({nullptr, 1 + order}, out.data(), grad.data(), count, Scale{1.25},
                            got.data());
      CHECK(SameBits(got, wanted));
    });
  }
}

TEST_CASE("what dropout kept has a gradient") {
  CheckDropoutGradient<float, float>();
  CheckDropoutGradient<double, double>();
  CheckDropoutGradient<Bfloat16, float>();
}

TEST_CASE("scores, their products and their gradients are the definition's") {
  for (const Shape& shape : kShapes) {
    constexpr uint32_t kHeads = 3;
    const uint64_t width = uint64_t{kHeads} * shape.columns;
    Random random(shape.rows + shape.columns);
    auto rows = random.Many<float>(shape.rows * width);
    auto vectors = random.Many<float>(width);
    auto scores = random.Many<float>(uint64_t{kHeads} * shape.rows);
    std::vector<float> products(scores.size());
    std::vector<float> sums(rows);
    for (uint32_t r = 0; r < shape.rows; ++r) {
      for (uint64_t i = 0; i < width; ++i) {
        sums[r * width + i] += scores[i / shape.columns * shape.rows + r] * vectors[i];
      }
      for (uint32_t h = 0; h < kHeads; ++h) {
        const float* const row = rows.data() + r * width + uint64_t{h} * shape.columns;
        const float* const vector = vectors.data() + uint64_t{h} * shape.columns;
        products[uint64_t{h} * shape.rows + r] =
            InParts(shape.columns, [&](uint32_t c) { return row[c] * vector[c]; });
      }
    }
    const auto gradients = InGroups(shape.rows, width, [&](uint32_t r, uint64_t c) {
      return scores[c / shape.columns * shape.rows + r] * rows[r * width + c];
    });
    test::InOrders([&](uint32_t order) {
      const cuda::Queue queue{nullptr, 1 + order};
      std::vector<float> got(scores.size());
      cuda::ScoresOfHeads(
          queue, {rows.data(), vectors.data(), got.data(), shape.rows, kHeads, shape.columns});
      CHECK(SameBits(got, products));
      std::vector<float> added = rows;
      cuda::AddOuter(
          queue, {added.data(), vectors.data(), scores.data(), shape.rows, kHeads, shape.columns});
      CHECK(SameBits(added, sums));
      std::vector<float> partial(cuda::SumFloats(shape.rows, width));
      std::vector<float> total(width);
      cuda::VectorsOfHeads(
          queue, {rows.data(), total.data(), scores.data(), shape.rows, kHeads, shape.columns},
          partial.data());
      CHECK(SameBits(total, gradients));
    });
  }
}

TEST_CASE("gradients of scores are added up over a row's edges, numbered or as they stand") {
  constexpr uint32_t kHeads = 2;
  for (const uint32_t rows : {0U, 1U, 80U}) {
    for (const bool numbered : {false, true}) {
      Random random(rows);
      std::vector<uint32_t> indptr{0};
      for (uint32_t r = 0; r < rows; ++r) indptr.push_back(indptr.back() + random.Below(5));
      const uint64_t edges = indptr.back();
      const uint32_t num_dst = rows / 2;
      std::vector<uint32_t> edge(edges);
      for (uint32_t k = 0; k < edges; ++k) edge[k] = static_cast<uint32_t>(edges - 1 - k);
      const auto grad = random.Many<float>(kHeads * (num_dst + edges));
      std::vector<float> wanted(uint64_t{kHeads} * rows);
      for (uint32_t h = 0; h < kHeads; ++h) {
        const float* const own = grad.data() + h * (num_dst + edges);
        for (uint32_t r = 0; r < rows; ++r) {
          float sum = r < num_dst ? own[r] : 0.0F;
          for (uint32_t k = indptr[r]; k < indptr[r + 1]; ++k) {
            sum += own[num_dst + (numbered ? edge[k] : k)];
          }
          wanted[uint64_t{h} * rows + r] = sum;
        }
      }
      test::InOrders([&](uint32_t order) {
        std::vector<float> got(wanted.size());
        cuda::SumScores({nullptr, 1 + order},
                        {grad.data(), rows, num_dst, edges, kHeads, indptr.data(),
                         numbered ? edge.data() : nullptr, got.data()});
        CHECK(SameBits(got, wanted));
      });
    }
  }
}

float Activated(cuda::Activated activation, float x) {
  if (activation == cuda::Activated::kRelu) return x < 0.0F ? 0.0F : x;
  if (activation == cuda::Activated::kLeakyRelu) return x > 0.0F ? x : 0.01F * x;
  return x > 0.0F ? x : ExpOfNonPositive(x) - 1.0F;
}

TEST_CASE("activations and their derivatives are the definition's") {
  const auto x = Random(1).Many<float>(3000);
  const auto grad = Random(2).Many<float>(x.size());
  for (const cuda::Activated activation :
       {cuda::Activated::kRelu, cuda::Activated::kElu, cuda::Activated::kLeakyRelu}) {
    std::vector<float> out(x);
    std::vector<float> wanted(grad);
    for (size_t i = 0; i < x.size(); ++i) {
      out[i] = Activated(activation, x[i]);
      const float low = activation == cuda::Activated::kElu    ? 0.75F * out[i] + 1.0F
                        : activation == cuda::Activated::kRelu ? 0.0F
                                                               : 0.01F;
      wanted[i] *= out[i] > 0.0F ? 1.0F : low;
    }
    test::InOrders([&](uint32_t order) {
      const cuda::Queue queue{nullptr, 1 + order};
      std::vector<float> got = x;
      cuda::Activate(queue, activation, got.data(), got.size());
      CHECK(SameBits(got, out));
      got = grad;
      cuda::ActivationGradient(queue, activation, out.data(), 0.75F, got.size(), got.data());
      CHECK(SameBits(got, wanted));
    });
  }
}

// Rows, their gradients, and what comes of both.
struct Normed {
  explicit Normed(const Shape& of)
      : shape(of), random(of.rows * 100 + of.columns), x(Many()), grad(Many()) {
    // A row that is too short for its own length.
    for (uint32_t c = 0; c < of.columns && of.rows > 1; ++c) x[c] = 1e-20F;
    out.resize(x.size());
    grad_in.resize(x.size());
  }
  std::vector<float> Many() { return random.Many<float>(uint64_t{shape.rows} * shape.columns); }
  template <typename Row>
  void EachRow(const Row& row) {
    for (uint32_t r = 0; r < shape.rows; ++r) {
      const uint64_t at = uint64_t{r} * shape.columns;
      row(r, x.data() + at, grad.data() + at, out.data() + at, grad_in.data() + at);
    }
  }

  Shape shape;
  Random random;
  std::vector<float> x;
  std::vector<float> grad;
  std::vector<float> out;
  std::vector<float> grad_in;
};

TEST_CASE("rows of length 1 and their gradients are the definition's") {
  for (const Shape& shape : kShapes) {
    Normed normed(shape);
    const uint32_t columns = shape.columns;
    normed.EachRow([&](uint32_t, const float* x, const float* grad, float* out, float* grad_in) {
      const float norm = std::sqrt(InParts(columns, [&](uint32_t c) { return x[c] * x[c]; }));
      const bool is_short = norm < 1e-12F;
      const float divisor = is_short ? 1e-12F : norm;
      const float dot = InParts(columns, [&](uint32_t c) { return x[c] * grad[c]; });
      const float along = is_short ? 0.0F : dot / (divisor * divisor);
      for (uint32_t c = 0; c < columns; ++c) {
        out[c] = x[c] / divisor;
        grad_in[c] = (grad[c] - along * x[c]) / divisor;
      }
    });
    test::InOrders([&](uint32_t order) {
      const cuda::Queue queue{nullptr, 1 + order};
      std::vector<float> got(normed.x.size());
      cuda::NormTask task;
      task.x = normed.x.data();
      task.rows = shape.rows;
      task.columns = columns;
      task.out = got.data();
      cuda::NormalizeL2(queue, task);
      CHECK(SameBits(got, normed.out));
      task.grad = normed.grad.data();
      cuda::NormalizeL2(queue, task);
      CHECK(SameBits(got, normed.grad_in));
    });
  }
}

TEST_CASE("layer normalisation and its gradients are the definition's") {
  for (const Shape& shape : kShapes) {
    Normed normed(shape);
    const uint32_t columns = shape.columns;
    const auto count = static_cast<float>(columns);
    const auto scale = normed.random.Many<float>(columns);
    const auto shift = normed.random.Many<float>(columns);
    std::vector<float> values(normed.x.size());  // standardised
    normed.EachRow([&](uint32_t r, const float* x, const float* grad, float* out, float* grad_in) {
      const float mean = InParts(columns, [&](uint32_t c) { return x[c]; }) / count;
      const float squares =
          InParts(columns, [&](uint32_t c) { return (x[c] - mean) * (x[c] - mean); });
      const float inverse = 1.0F / std::sqrt(squares / count + 1e-5F);
      float* const value = values.data() + uint64_t{r} * columns;
      for (uint32_t c = 0; c < columns; ++c) {
        value[c] = (x[c] - mean) * inverse;
        out[c] = value[c] * scale[c] + shift[c];
      }
      const float sum = InParts(columns, [&](uint32_t c) { return grad[c] * scale[c]; }) / count;
      const float slope =
          InParts(columns, [&](uint32_t c) { return grad[c] * scale[c] * value[c]; }) / count;
      for (uint32_t c = 0; c < columns; ++c) {
        grad_in[c] = inverse * (grad[c] * scale[c] - sum - value[c] * slope);
      }
    });
    const auto wanted = InGroups(shape.rows, 2 * columns, [&](uint32_t r, uint64_t c) {
      const uint64_t at = uint64_t{r} * columns + c % columns;
      return c < columns ? normed.grad[at] * values[at] : normed.grad[at];
    });
    test::InOrders([&](uint32_t order) {
      const cuda::Queue queue{nullptr, 1 + order};
      std::vector<float> got(normed.x.size());
      std::vector<float> grad_scale(2 * columns);
      std::vector<float> work(cuda::LayerNormFloats(shape.rows, columns));
      cuda::NormTask task{normed.x.data(), shape.rows, columns,    scale.data(),
                          shift.data(),    nullptr,    got.data(), grad_scale.data()};
      cuda::LayerNorm(queue, task, work.data());
      CHECK(SameBits(got, normed.out));
      task.grad = normed.grad.data();
      cuda::LayerNorm(queue, task, work.data());
      CHECK(SameBits(got, normed.grad_in));
      CHECK(SameBits(grad_scale, wanted));
    });
  }
}

}  // namespace
}  // namespace gnnd
