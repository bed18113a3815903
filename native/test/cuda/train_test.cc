#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/draw/dropout.h"
#include "core/kernels/loss.h"
#include "cuda/operators.h"
#include "test/cuda/orders.h"
#include "test/cuda/values.h"

// Training's operators beside their twins in core/kernels: the same bits, NaN for NaN.

namespace gnnd {
namespace {

using test::Random;
using test::SameBits;
using test::SameOrNan;

struct SpmmShape {
  uint32_t rows;
  uint32_t sources;
  uint32_t columns;
  uint32_t max_degree;
  bool weighted;
  bool self;
  bool scaled;
};

template <typename T, typename Element, typename Out>
void CheckSpmm(const SpmmShape& shape) {
  Random random(shape.rows * 1000 + shape.columns);
  const uint64_t stride = shape.columns + random.Below(3);
  const auto x = random.Many<Element>(shape.sources * stride);
  std::vector<uint32_t> indptr{0};
  std::vector<uint32_t> index;
  for (uint32_t r = 0; r < shape.rows; ++r) {
    uint32_t degree = random.Below(4) == 0 ? 0 : random.Below(shape.max_degree + 1);
    if (r == shape.rows / 2) degree = shape.max_degree * 7;
    for (uint32_t e = 0; e < degree; ++e) index.push_back(random.Below(shape.sources));
    indptr.push_back(static_cast<uint32_t>(index.size()));
  }
  const auto weight = random.Many<T>(index.size());
  const auto scale = random.Many<T>(shape.rows);
  const auto self_weight = random.Many<T>(shape.rows);
  std::vector<uint32_t> self_index(shape.rows);
  for (uint32_t& s : self_index) s = random.Below(shape.sources);

  Spmm<T, Element, Out> op;
  op.x = x.data();
  op.x_stride = stride;
  op.columns = shape.columns;
  op.indptr = indptr.data();
  op.index = index.data();
  op.weight = shape.weighted ? weight.data() : nullptr;
  if (shape.self) {
    op.self = x.data();
    op.self_stride = stride;
    op.self_rows = shape.rows - shape.rows / 3;
    op.self_index = self_index.data();
    op.self_weight = shape.weighted ? self_weight.data() : nullptr;
  }
  op.scale = shape.scaled ? scale.data() : nullptr;
  op.out_stride = shape.columns + 1;
  std::vector<Out> wanted(shape.rows * op.out_stride, Out{});
  op.out = wanted.data();
  RunSpmm(op, 0, shape.rows);
  test::InOrders([&](uint32_t order) {
    std::vector<Out> got(wanted.size(), Out{});
    op.out = got.data();
    const uint32_t split = shape.rows / 3;
    cuda::RunSpmm({nullptr, 1 + order}, op, 0, split);
    cuda::RunSpmm({nullptr, 3}, op, split, shape.rows);
    CHECK(SameBits(got, wanted));
  });
}

template <typename T, typename Element, typename Out>
void CheckSpmmOf() {
  for (const uint32_t columns : {1U, 7U, 8U, 31U, 33U, 64U, 129U, 300U}) {
    CAPTURE(columns);
    CheckSpmm<T, Element, Out>({40, 90, columns, 9, columns % 2 == 0, columns % 3 != 0, true});
  }
  CheckSpmm<T, Element, Out>({1, 1, 5, 0, false, false, false});
  CheckSpmm<T, Element, Out>({1, 3, 40, 500, true, true, false});
  CheckSpmm<T, Element, Out>({700, 200, 3, 5, true, false, true});
}

}  // namespace

TEST_CASE("sums of rows have the processor's bits, of every type") {
  CheckSpmmOf<float, float, float>();
  CheckSpmmOf<float, Half, float>();
  CheckSpmmOf<double, double, double>();
  CheckSpmmOf<float, Bfloat16, Bfloat16>();
  CheckSpmmOf<float, float, Bfloat16>();
  CheckSpmmOf<float, Half, Bfloat16>();
}

namespace {

template <typename T, typename Scale>
void CheckDropout(uint32_t rows, uint32_t columns, float p, bool relu) {
  Random random(columns);
  DropoutRows<T, Scale> op;
  op.key = {0xFEDCBA9876543210, 3, 4, 1};
  op.stride = columns + 2;
  auto start = random.Many<T>(rows * op.stride);
  if constexpr (std::is_same_v<T, float>) start[0] = std::numeric_limits<float>::quiet_NaN();
  std::vector<uint32_t> nodes(rows);
  for (uint32_t& node : nodes) node = random.Below(0xFFFFFFFF);
  op.nodes = nodes.data();
  op.columns = columns;
  op.threshold = DropoutThreshold(p);
  op.scale = Scale{1} / (Scale{1} - static_cast<Scale>(p));
  op.relu = relu;
  auto wanted = start;
  op.rows = wanted.data();
  RunDropout(op, 0, rows);
  test::InOrders([&](uint32_t order) {
    auto got = start;
    op.rows = got.data();
    cuda::RunDropout({nullptr, 1 + order}, op, 0, rows / 2);
    cuda::RunDropout({nullptr, 2}, op, rows / 2, rows);
    if constexpr (std::is_same_v<T, float>) {
      CHECK(SameOrNan(got, wanted));
    } else {
      CHECK(SameBits(got, wanted));
    }
  });
}

}  // namespace

TEST_CASE("dropout keeps what the processor keeps") {
  for (const uint32_t columns : {1U, 4U, 6U, 47U, 256U}) {
    for (const float p : {0.0F, 0.3F, 0.5F, 0.99F}) {
      for (const bool relu : {false, true}) {
        CAPTURE(columns);
        CAPTURE(p);
        CheckDropout<float, float>(23, columns, p, relu);
        CheckDropout<double, double>(9, columns, p, relu);
        CheckDropout<Bfloat16, float>(23, columns, p, relu);
      }
    }
  }
}

TEST_CASE("losses and their gradients have the processor's bits") {
  for (const uint32_t columns : {1U, 2U, 31U, 32U, 47U, 172U}) {
    for (const uint32_t rows : {1U, 33U}) {
      Random random(columns + rows);
      const uint64_t stride = columns;
      auto logits = random.Many<float>(rows * stride);
      for (float& logit : logits) logit /= 100.0F;
      if (rows > 3) {
        std::fill_n(logits.begin(), columns, 2.5F);                   // all equal
        logits[stride] = 200.0F;                                      // far above
        logits[2 * stride] = std::numeric_limits<float>::infinity();  // diverged
        logits[3 * stride + columns / 2] = std::numeric_limits<float>::quiet_NaN();
      }
      std::vector<uint32_t> labels(rows);
      for (uint32_t& label : labels) label = random.Below(columns);
      std::vector<float> wanted(rows * stride);
      std::vector<double> losses(rows);
      std::vector<uint32_t> best(rows);
      for (uint32_t r = 0; r < rows; ++r) {
        const std::span<const float> row(logits.data() + r * stride, columns);
        losses[r] = CrossEntropy(row, labels[r], wanted.data() + r * stride);
        best[r] = ArgMax(row);
      }
      test::InOrders([&](uint32_t order) {
        std::vector<float> grad(rows * stride, -1.0F);
        std::vector<double> exp_sums(rows);
        std::vector<float> margins(rows);
        std::vector<uint32_t> got_best(rows);
        const cuda::Queue queue{nullptr, 1 + order};
        cuda::LossRows op{logits.data(), stride,          columns,       labels.data(),
                          grad.data(),   exp_sums.data(), margins.data()};
        cuda::CrossEntropy(queue, op, 0, rows);
        cuda::ArgMax(queue, logits.data(), stride, columns, 0, rows, got_best.data());
        CHECK(SameOrNan(grad, wanted));
        CHECK(got_best == best);
        for (const bool with_grad : {true, false}) {
          op.grad = with_grad ? grad.data() : nullptr;
          cuda::CrossEntropy(queue, op, 0, rows);
          for (uint32_t r = 0; r < rows; ++r) {
            const double loss = LossOf(exp_sums[r], static_cast<double>(margins[r]));
            CHECK((loss == losses[r] || (std::isnan(loss) && std::isnan(losses[r]))));
          }
        }
      });
    }
  }
}

}  // namespace gnnd
