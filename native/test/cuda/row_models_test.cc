#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/draw/dropout.h"
#include "core/draw/philox.h"
#include "core/kernels/exp.h"
#include "cuda/operators.h"
#include "test/cuda/orders.h"
#include "test/cuda/values.h"

// Operators of models over rows against their definition: sums over columns in eight parts, sums
// over rows in groups of 64.

namespace gnnd {
namespace {

using test::Random;
using test::SameBits;

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

float Dot(const float* a, const float* b, uint32_t count) {
  float sum[8] = {};
  for (uint32_t c = 0; c < count; ++c) sum[c % 8] += a[c] * b[c];
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

struct Shape {
  uint32_t rows;
  uint32_t columns;
};
constexpr Shape kShapes[] = {{1, 1}, {63, 8}, {64, 31}, {65, 32}, {200, 47}};

TEST_CASE("batch normalisation and its gradients are the definition's") {
  for (const Shape& shape : kShapes) {
    const uint32_t columns = shape.columns;
    Random random(shape.rows * 100 + columns);
    const auto x = random.Many<float>(uint64_t{shape.rows} * columns);
    const auto grad = random.Many<float>(x.size());
    const auto scale = random.Many<float>(columns);
    const auto shift = random.Many<float>(columns);
    const auto count = static_cast<float>(shape.rows);
    auto moments =
        InGroups(shape.rows, columns, [&](uint32_t r, uint64_t c) { return x[r * columns + c]; });
    for (float& mean : moments) mean /= count;
    const auto squares = InGroups(shape.rows, columns, [&](uint32_t r, uint64_t c) {
      const float distance = x[r * columns + c] - moments[c];
      return distance * distance;
    });
    for (const float square : squares) moments.push_back(square / count);
    std::vector<float> inverse(columns);
    for (uint32_t c = 0; c < columns; ++c) {
      inverse[c] = 1.0F / std::sqrt(moments[columns + c] + 1e-5F);
    }
    const auto unit = [&](uint64_t at) {
      return (x[at] - moments[at % columns]) * inverse[at % columns];
    };
    const auto sums = InGroups(shape.rows, 2 * columns, [&](uint32_t r, uint64_t c) {
      const uint64_t at = uint64_t{r} * columns + c % columns;
      return c < columns ? grad[at] * unit(at) : grad[at];
    });
    std::vector<float> out(x.size());
    std::vector<float> grad_in(x.size());
    for (uint64_t at = 0; at < x.size(); ++at) {
      const uint64_t c = at % columns;
      out[at] = unit(at) * scale[c] + shift[c];
      const float along = (sums[columns + c] + unit(at) * sums[c]) / count;
      grad_in[at] = scale[c] * inverse[c] * (grad[at] - along);
    }
    test::InOrders([&](uint32_t order) {
      const cuda::Queue queue{nullptr, 1 + order};
      std::vector<float> got(x.size());
      std::vector<float> got_moments(2 * columns);
      std::vector<float> got_inverse(columns);
      std::vector<float> got_sums(2 * columns);
      std::vector<float> work(cuda::BatchNormFloats(shape.rows, columns));
      cuda::BatchNormTask task{
          x.data(),           shape.rows,         columns, scale.data(), shift.data(),
          got_moments.data(), got_inverse.data(), nullptr, got.data(),   got_sums.data()};
      cuda::BatchNorm(queue, task, false, work.data());
      CHECK(SameBits(got_moments, moments));
      CHECK(SameBits(got_inverse, inverse));
      CHECK(SameBits(got, out));
      std::fill(got_inverse.begin(), got_inverse.end(), 0.0F);
      cuda::BatchNorm(queue, task, true, nullptr);
      CHECK(SameBits(got_inverse, inverse));
      CHECK(SameBits(got, out));
      task.grad = grad.data();
      cuda::BatchNorm(queue, task, false, work.data());
      CHECK(SameBits(got, grad_in));
      CHECK(SameBits(got_sums, sums));
    });
  }
}

TEST_CASE("PReLU and its gradients are the definition's") {
  for (const Shape& shape : kShapes) {
    Random random(shape.rows + shape.columns);
    const auto x = random.Many<float>(uint64_t{shape.rows} * shape.columns);
    const auto grad = random.Many<float>(x.size());
    const float slope = 0.3F;
    std::vector<float> out(x.size());
    std::vector<float> grad_in(x.size());
    float total = 0;
    for (uint64_t begin = 0; begin < x.size(); begin += 64ULL * shape.columns) {
      float sum = 0;
      for (uint64_t i = begin; i < std::min<uint64_t>(x.size(), begin + 64ULL * shape.columns);
           ++i) {
        out[i] = x[i] > 0.0F ? x[i] : slope * x[i];
        grad_in[i] = x[i] > 0.0F ? grad[i] : slope * grad[i];
        if (!(x[i] > 0.0F)) sum += grad[i] * x[i];
      }
      total += sum;
    }
    test::InOrders([&](uint32_t order) {
      const cuda::Queue queue{nullptr, 1 + order};
      std::vector<float> got(x.size());
      std::vector<float> got_slope(1);
      std::vector<float> partial(cuda::SumFloats(shape.rows, 1));
      cuda::PReluTask task{x.data(), shape.rows, shape.columns,   &slope,
                           nullptr,  got.data(), got_slope.data()};
      cuda::PRelu(queue, task, nullptr);
      CHECK(SameBits(got, out));
      task.grad = grad.data();
      cuda::PRelu(queue, task, partial.data());
      CHECK(SameBits(got, grad_in));
      CHECK(SameBits(got_slope, {total}));
    });
  }
}

struct Tokens {
  uint32_t rows;
  uint32_t queries;
  uint32_t tokens;
  uint32_t heads;
  uint32_t head_width;
};
constexpr Tokens kTokens[] = {
    {1, 1, 1, 1, 1}, {5, 4, 4, 2, 8}, {33, 1, 5, 3, 11}, {9, 10, 10, 1, 40}};

// Values for it, and what comes of them.
struct Attended {
  Attended(const Tokens& of, bool is_masked)
      : shape(of),
        width(uint64_t{of.heads} * of.head_width),
        scores(uint64_t{of.heads} * of.queries * of.tokens),
        random(of.rows * 31 + of.tokens),
        query(random.Many<float>(of.rows * of.queries * width)),
        key(random.Many<float>(of.rows * of.tokens * width)),
        value(random.Many<float>(key.size())),
        grad(random.Many<float>(query.size())),
        probability(of.rows * scores),
        out(query.size(), 0.0F),
        grad_query(query.size(), 0.0F),
        grad_key(key.size(), 0.0F),
        grad_value(key.size(), 0.0F) {
    for (float& each : query) each *= 0.01F;  // so that probabilities are not all 0 and 1
    for (uint32_t r = 0; r < of.rows; ++r) nodes.push_back(random.Below(1000));
    if (is_masked) Mask();
    for (uint32_t r = 0; r < of.rows; ++r) {
      for (uint32_t h = 0; h < of.heads; ++h) {
        for (uint32_t q = 0; q < of.queries; ++q) Attend(r, h, q);
      }
    }
  }

  void Mask() {
    const DrawStream stream = DropoutStream(dropout, Purpose::kAttentionDropout);
    mask.resize(probability.size());
    for (uint64_t i = 0; i < mask.size(); ++i) {
      const PhiloxWords words = LongRowWords(stream, nodes[i / scores], i % scores / 4);
      mask[i] = words.word[i % scores % 4] >= threshold ? 2.0F : 0.0F;
    }
  }

  void Attend(uint32_t r, uint32_t h, uint32_t q) {
    const Tokens& of = shape;
    const float scale = 1.0F / std::sqrt(static_cast<float>(of.head_width));
    const uint64_t here = (uint64_t{r} * of.queries + q) * width + h * of.head_width;
    const uint64_t at = ((uint64_t{r} * of.heads + h) * of.queries + q) * of.tokens;
    const auto there = [&](uint32_t t) {
      return (uint64_t{r} * of.tokens + t) * width + h * of.head_width;
    };
    const auto kept = [&](uint32_t t) { return mask.empty() ? 1.0F : mask[at + t]; };
    float most = -std::numeric_limits<float>::infinity();
    for (uint32_t t = 0; t < of.tokens; ++t) {
      probability[at + t] = scale * Dot(&query[here], &key[there(t)], of.head_width);
      most = std::max(most, probability[at + t]);
    }
    float sum = 0;
    for (uint32_t t = 0; t < of.tokens; ++t) {
      sum += probability[at + t] = ExpOfNonPositive(probability[at + t] - most);
    }
    std::vector<float> along(of.tokens);
    float mean = 0;
    for (uint32_t t = 0; t < of.tokens; ++t) {
      const float p = probability[at + t] /= sum;
      const float factor = mask.empty() ? p : p * mask[at + t];
      along[t] = kept(t) * Dot(&grad[here], &value[there(t)], of.head_width);
      mean += along[t] * p;
      for (uint32_t c = 0; c < of.head_width; ++c) {
        out[here + c] += factor * value[there(t) + c];
        grad_value[there(t) + c] += kept(t) * p * grad[here + c];
      }
    }
    for (uint32_t t = 0; t < of.tokens; ++t) {
      const float slope = scale * probability[at + t] * (along[t] - mean);
      for (uint32_t c = 0; c < of.head_width; ++c) {
        grad_query[here + c] += slope * key[there(t) + c];
        grad_key[there(t) + c] += slope * query[here + c];
      }
    }
  }

  Tokens shape;
  uint64_t width;
  uint64_t scores;
  DropoutKey dropout{9, 2, 3, 1};
  uint64_t threshold = DropoutThreshold(0.5F);
  Random random;
  std::vector<float> query, key, value, grad;
  std::vector<uint32_t> nodes;
  std::vector<float> mask;
  std::vector<float> probability, out, grad_query, grad_key, grad_value;
};

TEST_CASE("attention over tokens and its gradients are the definition's") {
  for (const Tokens& shape : kTokens) {
    for (const bool is_masked : {false, true}) {
      const Attended wanted(shape, is_masked);
      test::InOrders([&](uint32_t order) {
        const cuda::Queue queue{nullptr, 1 + order};
        std::vector<float> mask(wanted.mask.size());
        std::vector<float> probability(wanted.probability.size());
        std::vector<float> out(wanted.out.size());
        std::vector<float> grad_query(wanted.grad_query.size());
        std::vector<float> grad_key(wanted.grad_key.size());
        std::vector<float> grad_value(wanted.grad_value.size());
        std::vector<float> along(probability.size());
        cuda::TokensTask task;
        task.rows = shape.rows;
        task.queries = shape.queries;
        task.tokens = shape.tokens;
        task.heads = shape.heads;
        task.head_width = shape.head_width;
        task.query = wanted.query.data();
        task.key = wanted.key.data();
        task.value = wanted.value.data();
        task.probability = probability.data();
        task.mask = is_masked ? mask.data() : nullptr;
        task.out = out.data();
        if (is_masked) {
          cuda::TokenMasks(queue, task, wanted.dropout, wanted.nodes.data(), wanted.threshold,
                           2.0F);
          CHECK(SameBits(mask, wanted.mask));
        }
        cuda::TokenAttention(queue, task);
        CHECK(SameBits(probability, wanted.probability));
        CHECK(SameBits(out, wanted.out));
        task.grad = wanted.grad.data();
        task.grad_query = grad_query.data();
        task.grad_key = grad_key.data();
        task.grad_value = grad_value.data();
        task.along = along.data();
        cuda::TokenAttention(queue, task);
        CHECK(SameBits(grad_query, wanted.grad_query));
        CHECK(SameBits(grad_key, wanted.grad_key));
        CHECK(SameBits(grad_value, wanted.grad_value));
      });
    }
  }
}

}  // namespace
}  // namespace gnnd
