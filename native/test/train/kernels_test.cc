#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "core/base/philox.h"
#include "test/support/halves.h"
#include "train/attention_rows.h"
#include "train/dropout.h"
#include "train/exp.h"
#include "train/gather_sum.h"
#include "train/transpose.h"

namespace gnnd {
namespace {

std::vector<InstructionSet> SetsOfThisMachine() {
  std::vector<InstructionSet> sets = {InstructionSet::kScalar};
  if (DetectInstructionSet() >= InstructionSet::kAvx2) sets.push_back(InstructionSet::kAvx2);
  if (DetectInstructionSet() >= InstructionSet::kAvx512) sets.push_back(InstructionSet::kAvx512);
  return sets;
}

std::vector<float> RandomFloats(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct GatherCase {
  uint32_t columns;
  bool weights;
  bool self;
  bool self_weights;
  bool self_index;
  bool scale;
};

// The same numbers in either type.
template <typename Element>
std::vector<Element> RandomRows(size_t count, uint64_t seed) {
  const std::vector<Half> halves = test::RandomHalves(count, seed);
  if constexpr (std::is_same_v<Element, Half>) {
    return halves;
  } else {
    return test::Widened(halves);
  }
}

// The result of one variant on a fixed random operand; guards catch stores beyond a row.
// Rows are of Element, float or Half, with the values of float16 numbers.
template <typename Element>
std::vector<float> RunGatherCase(const GatherCase& c, InstructionSet set) {
  constexpr uint32_t kRows = 13;
  constexpr uint32_t kSources = 29;
  const uint32_t stride = c.columns + 3;
  std::mt19937_64 random(c.columns);
  std::vector<uint32_t> indptr = {0};
  std::vector<uint32_t> index;
  for (uint32_t r = 0; r < kRows; ++r) {
    const uint64_t degree = r % 4 == 0 ? 0 : random() % 20;
    for (uint64_t k = 0; k < degree; ++k)
      index.push_back(static_cast<uint32_t>(random() % kSources));
    indptr.push_back(static_cast<uint32_t>(index.size()));
  }
  std::vector<uint32_t> self_index(kRows);
  for (uint32_t& s : self_index) s = static_cast<uint32_t>(random() % kSources);
  const auto x = RandomRows<Element>(kSources * stride, 1);
  const auto self = RandomRows<Element>(kSources * stride, 2);
  const auto weight = RandomFloats(index.size(), 3);
  const auto self_weight = RandomFloats(kRows, 4);
  const auto scale = RandomFloats(kRows, 5);
  std::vector<float> out(kRows * stride, -7.0F);

  GatherSum<float, Element> op;
  op.x = x.data();
  op.x_stride = stride;
  op.columns = c.columns;
  op.indptr = indptr.data();
  op.index = index.data();
  if (c.weights) op.weight = weight.data();
  if (c.self) op.self = self.data();
  op.self_stride = stride;
  if (c.self_index) op.self_index = self_index.data();
  if (c.self_weights) op.self_weight = self_weight.data();
  op.self_rows = kRows - 3;
  if (c.scale) op.scale = scale.data();
  op.out = out.data();
  op.out_stride = stride;
  GatherSumVariant<Element>(set)(op, 0, 5);  // in two stretches, as two threads would
  GatherSumVariant<Element>(set)(op, 5, kRows);
  return out;
}

TEST_CASE("every variant and row type of the aggregation kernel gives the same bits") {
  for (uint32_t columns = 1; columns <= 300; columns += columns < 70 ? 1 : 23) {
    for (uint32_t flags = 0; flags < 32; ++flags) {
      const GatherCase c{columns,          (flags & 1) != 0, (flags & 2) != 0,
                         (flags & 4) != 0, (flags & 8) != 0, (flags & 16) != 0};
      const auto expected = RunGatherCase<float>(c, InstructionSet::kScalar);
      for (const InstructionSet set : SetsOfThisMachine()) {
        INFO(NameOf(set), " columns ", columns, " flags ", flags);
        REQUIRE(SameBits(RunGatherCase<float>(c, set), expected));
        REQUIRE(SameBits(RunGatherCase<Half>(c, set), expected));
      }
      for (size_t row = 0; row < expected.size(); row += columns + 3) {
        REQUIRE(expected[row + columns] == -7.0F);
      }
    }
  }
}

TEST_CASE("the aggregation kernel adds the self term first, then edges in order, then scales") {
  const std::vector<float> x = {1.0e8F, 1.0F, -1.0e8F};
  const std::vector<uint32_t> indptr = {0, 3};
  const std::vector<uint32_t> index = {0, 1, 2};
  const float self = 3.0F;
  const float scale = 2.0F;
  float out = 0;
  GatherSum<float> op;
  op.x = x.data();
  op.x_stride = 1;
  op.columns = 1;
  op.indptr = indptr.data();
  op.index = index.data();
  op.self = &self;
  op.self_stride = 1;
  op.self_rows = 1;
  op.scale = &scale;
  op.out = &out;
  op.out_stride = 1;
  RunGatherSum(op, 0, 1);
  CHECK(out == (((3.0F + 1.0e8F) + 1.0F) + -1.0e8F) * 2.0F);
}

std::vector<float> RunDropoutCase(uint32_t columns, float p, bool relu, InstructionSet set) {
  const std::vector<uint32_t> nodes = {5, 0, 4'000'000'000U, 77};
  const uint32_t stride = columns + 2;
  auto rows = RandomFloats(nodes.size() * stride, columns);
  DropoutRows<float> op;
  op.key = {0x123456789ABCDEFULL, 3, 11, 2};
  op.nodes = nodes.data();
  op.rows = rows.data();
  op.stride = stride;
  op.columns = columns;
  op.threshold = DropoutThreshold(p);
  op.scale = 1.0F / (1.0F - p);
  op.relu = relu;
  DropoutVariant(set)(op, 0, static_cast<uint32_t>(nodes.size()));
  return rows;
}

TEST_CASE("every variant of dropout gives the same bits and stays in its columns") {
  for (uint32_t columns = 1; columns <= 200; ++columns) {
    for (const float p : {0.3F, 0.5F, 0.97F}) {
      for (const bool relu : {false, true}) {
        const auto expected = RunDropoutCase(columns, p, relu, InstructionSet::kScalar);
        for (const InstructionSet set : SetsOfThisMachine()) {
          INFO(NameOf(set), " columns ", columns, " p ", p);
          REQUIRE(SameBits(RunDropoutCase(columns, p, relu, set), expected));
        }
      }
    }
  }
}

TEST_CASE("an element survives exactly when its keyed unit draw is not below p") {
  const DropoutKey key{99, 7, 5, 1};
  const uint32_t node = 123456;
  for (const float p : {0.1F, 0.5F, 0.6F}) {
    std::vector<float> row(1000, 1.0F);
    DropoutRows<float> op;
    op.key = key;
    op.nodes = &node;
    op.rows = row.data();
    op.stride = row.size();
    op.columns = static_cast<uint32_t>(row.size());
    op.threshold = DropoutThreshold(p);
    RunDropout(op, 0, 1);
    uint32_t survivors = 0;
    for (uint32_t c = 0; c < row.size(); ++c) {
      const PhiloxWords words =
          Philox(KeyOf(99), CounterOf(Purpose::kDropout, 7, 5, 1, node, c / 4));
      REQUIRE(row[c] == (UnitDraw(words.word[c % 4]) >= p ? 1.0F : 0.0F));
      survivors += row[c] == 1.0F;
    }
    CHECK(survivors == doctest::Approx(1000 * (1 - static_cast<double>(p))).epsilon(0.15));
  }
}

TEST_CASE("without dropout ReLU keeps positive elements, zeroes negative ones and passes NaN on") {
  std::vector<float> row = {1.5F, -2.0F, 0.0F, std::nanf("")};
  DropoutRows<float> op;
  op.rows = row.data();
  op.stride = 4;
  op.columns = 4;
  op.relu = true;
  RunDropout(op, 0, 1);
  CHECK(row[0] == 1.5F);
  CHECK(row[1] == 0.0F);
  CHECK(row[2] == 0.0F);
  CHECK(std::isnan(row[3]));
}

TEST_CASE("the transpose lists each source's destinations in ascending order with their weights") {
  const std::vector<uint32_t> indptr = {0, 3, 3, 5};
  const std::vector<uint32_t> src = {4, 0, 4, 0, 2};
  const std::vector<float> weight = {1, 2, 3, 4, 5};
  std::vector<uint32_t> transposed(7);
  std::vector<uint32_t> dst(5);
  std::vector<float> carried(5);
  TransposeInput<float> input{indptr, src, 6, weight.data(), false};
  TransposeBlock(input, transposed.data(), dst.data(), carried.data());
  CHECK(transposed == std::vector<uint32_t>{0, 2, 2, 3, 3, 5, 5});
  CHECK(dst == std::vector<uint32_t>{0, 2, 2, 0, 0});
  CHECK(carried == std::vector<float>{2, 4, 5, 1, 3});

  const std::vector<float> per_destination = {10, 20, 30};
  input.weight = per_destination.data();
  input.weight_per_destination = true;
  TransposeBlock(input, transposed.data(), dst.data(), carried.data());
  CHECK(carried == std::vector<float>{10, 30, 30, 10, 10});
}

struct AttentionCase {
  uint32_t heads;
  uint32_t columns;
  bool v2;
};

// Everything the passes of one variant write, on a fixed random operand.
std::vector<float> RunAttentionCase(const AttentionCase& c, InstructionSet set) {
  constexpr uint32_t kDst = 11;
  constexpr uint32_t kSrc = 31;
  const uint32_t width = c.heads * c.columns;
  std::mt19937_64 random(width);
  std::vector<uint32_t> indptr = {0};
  std::vector<uint32_t> index;
  for (uint32_t r = 0; r < kDst; ++r) {
    const uint64_t degree = r % 4 == 0 ? 0 : random() % 20;
    for (uint64_t k = 0; k < degree; ++k) index.push_back(static_cast<uint32_t>(random() % kSrc));
    if (r % 3 == 1) index.push_back(r);  // does not count beside the row itself
    indptr.push_back(static_cast<uint32_t>(index.size()));
  }
  std::vector<uint32_t> edge(index.size());
  for (uint32_t e = 0; e < edge.size(); ++e) edge[e] = e;
  std::vector<uint32_t> transposed_indptr(kSrc + 1);
  std::vector<uint32_t> transposed_dst(index.size());
  std::vector<uint32_t> transposed_edge(index.size());
  TransposeInput<uint32_t> transpose;
  transpose.indptr = indptr;
  transpose.src = index;
  transpose.num_src = kSrc;
  transpose.weight = edge.data();
  TransposeBlock(transpose, transposed_indptr.data(), transposed_dst.data(),
                 transposed_edge.data());
  const auto source = RandomFloats(kSrc * width, 1);
  const auto destination = RandomFloats(kDst * width, 2);
  const auto attention = RandomFloats(width, 3);
  const auto source_score = RandomFloats(kSrc * c.heads, 4);
  const auto destination_score = RandomFloats(kDst * c.heads, 5);
  const auto grad_out = RandomFloats(kDst * width, 6);

  AttentionRows<float> op;
  op.indptr = indptr.data();
  op.index = index.data();
  op.num_dst = kDst;
  op.num_edges = index.size();
  op.num_src = kSrc;
  op.heads = c.heads;
  op.columns = c.columns;
  op.source = source.data();
  const uint64_t scores = c.heads * op.stride();
  std::vector<float> out(2 * scores + (kDst + 1 + kSrc) * width, 0.0F);
  op.alpha = out.data();
  op.weight = op.alpha;
  op.grad_score = op.alpha + scores;
  op.grad_out = grad_out.data();
  op.grad_destination = op.grad_score + scores;
  op.grad_attention = op.grad_destination + kDst * width;
  op.grad_source = op.grad_attention + width;
  op.transposed_indptr = transposed_indptr.data();
  op.transposed_dst = transposed_dst.data();
  op.transposed_edge = transposed_edge.data();
  if (c.v2) {
    op.destination = destination.data();
    op.attention = attention.data();
  } else {
    op.source_score = source_score.data();
    op.destination_score = destination_score.data();
  }
  const AttentionFunction run = AttentionVariant(set);
  for (const AttentionPass pass : {AttentionPass::kForward, AttentionPass::kBackward}) {
    run(op, pass, 0, 4);  // in two stretches, as two threads would
    run(op, pass, 4, kDst);
  }
  if (c.v2) run(op, AttentionPass::kBackwardSrc, 0, kSrc);
  return out;
}

TEST_CASE("every variant of the attention kernels gives the same bits") {
  for (const bool v2 : {false, true}) {
    for (const uint32_t heads : {1U, 3U, 8U}) {
      for (const uint32_t columns : {1U, 7U, 8U, 19U, 32U}) {
        const AttentionCase c{heads, columns, v2};
        const auto expected = RunAttentionCase(c, InstructionSet::kScalar);
        for (const InstructionSet set : SetsOfThisMachine()) {
          INFO(NameOf(set), " heads ", heads, " columns ", columns, " v2 ", v2);
          REQUIRE(SameBits(RunAttentionCase(c, set), expected));
        }
      }
    }
  }
}

TEST_CASE(
    "attention's exponential is that of the C library to a few ulp, 0 far below, NaN for NaN") {
  for (float x = 0; x > -87.0F; x -= 0.0137F) {
    const double exact = std::exp(static_cast<double>(x));
    REQUIRE(std::abs(static_cast<double>(ExpOfNonPositive(x)) - exact) <= 4e-7 * exact);
  }
  CHECK(ExpOfNonPositive(0.0F) == 1.0F);
  CHECK(ExpOfNonPositive(-88.0F) == 0.0F);
  CHECK(ExpOfNonPositive(-std::numeric_limits<float>::infinity()) == 0.0F);
  CHECK(std::isnan(ExpOfNonPositive(std::nanf(""))));
}

}  // namespace
}  // namespace gnnd
