#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "core/draw/philox.h"
#include "core/kernels/attention.h"
#include "core/kernels/dropout.h"
#include "core/kernels/exp.h"
#include "core/kernels/spmm.h"
#include "core/kernels/transpose.h"
#include "test/support/halves.h"

namespace gnnd {
namespace {

std::vector<float> RandomFloats(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
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

// The definition, a column at a time.
void SpmmByColumns(const Spmm<float>& op, uint32_t rows) {
  for (uint32_t r = 0; r < rows; ++r) {
    for (uint32_t c = 0; c < op.columns; ++c) {
      float sum = 0;
      if (op.self != nullptr && r < op.self_rows) {
        const uint64_t self_row = op.self_index == nullptr ? r : op.self_index[r];
        sum = op.self[self_row * op.self_stride + c];
        if (op.self_weight != nullptr) sum = op.self_weight[r] * sum;
      }
      for (uint32_t e = op.indptr[r]; e < op.indptr[r + 1]; ++e) {
        const float x = op.x[op.index[e] * op.x_stride + c];
        sum += op.weight == nullptr ? x : op.weight[e] * x;
      }
      op.out[r * op.out_stride + c] = op.scale == nullptr ? sum : op.scale[r] * sum;
    }
  }
}

// An operation on fixed random numbers, its result between guards that catch stores beyond a row.
// Rows are of Element, float or Half, with the values of float16 numbers.
template <typename Element>
class SpmmOperand {
 public:
  static constexpr uint32_t kRows = 13;

  explicit SpmmOperand(const GatherCase& c) : stride_(c.columns + 3) {
    constexpr uint32_t kSources = 29;
    std::mt19937_64 random(c.columns);
    for (uint32_t r = 0; r < kRows; ++r) {
      const uint64_t degree = r % 4 == 0 ? 0 : random() % 20;
      for (uint64_t k = 0; k < degree; ++k)
        index_.push_back(static_cast<uint32_t>(random() % kSources));
      indptr_.push_back(static_cast<uint32_t>(index_.size()));
    }
    for (uint32_t& s : self_index_) s = static_cast<uint32_t>(random() % kSources);
    x_ = RandomRows<Element>(kSources * stride_, 1);
    self_ = RandomRows<Element>(kSources * stride_, 2);
    weight_ = RandomFloats(index_.size(), 3);
    out.assign(kRows * stride_, -7.0F);
    op.x = x_.data();
    op.x_stride = stride_;
    op.columns = c.columns;
    op.indptr = indptr_.data();
    op.index = index_.data();
    if (c.weights) op.weight = weight_.data();
    if (c.self) op.self = self_.data();
    op.self_stride = stride_;
    if (c.self_index) op.self_index = self_index_.data();
    if (c.self_weights) op.self_weight = self_weight_.data();
    op.self_rows = kRows - 3;
    if (c.scale) op.scale = scale_.data();
    op.out = out.data();
    op.out_stride = stride_;
  }
  SpmmOperand(const SpmmOperand&) = delete;
  SpmmOperand& operator=(const SpmmOperand&) = delete;

  Spmm<float, Element> op;
  std::vector<float> out;

 private:
  uint32_t stride_;
  std::vector<uint32_t> indptr_ = {0};
  std::vector<uint32_t> index_;
  std::vector<uint32_t> self_index_ = std::vector<uint32_t>(kRows);
  std::vector<Element> x_;
  std::vector<Element> self_;
  std::vector<float> weight_;
  std::vector<float> self_weight_ = RandomFloats(kRows, 4);
  std::vector<float> scale_ = RandomFloats(kRows, 5);
};

template <typename Element>
std::vector<float> RunGatherCase(const GatherCase& c, InstructionSet set) {
  SpmmOperand<Element> operand(c);
  const auto run = [&](uint32_t begin, uint32_t end) {
    if constexpr (std::is_same_v<Element, Half>) {
      LoopsFor<SpmmLoops>(set).of_half(operand.op, begin, end);
    } else {
      LoopsFor<SpmmLoops>(set).of_float(operand.op, begin, end);
    }
  };
  run(0, 5);  // in two stretches, as two threads would
  run(5, operand.kRows);
  return operand.out;
}

TEST_CASE("every variant and row type of the aggregation kernel gives the definition's bits") {
  for (uint32_t columns = 1; columns <= 300; columns += columns < 70 ? 1 : 23) {
    for (uint32_t flags = 0; flags < 32; ++flags) {
      const GatherCase c{columns,          (flags & 1) != 0, (flags & 2) != 0,
                         (flags & 4) != 0, (flags & 8) != 0, (flags & 16) != 0};
      SpmmOperand<float> expected(c);
      SpmmByColumns(expected.op, expected.kRows);
      for (const InstructionSet set : AvailableInstructionSets()) {
        INFO(NameOf(set), " columns ", columns, " flags ", flags);
        REQUIRE(SameBits(RunGatherCase<float>(c, set), expected.out));
        REQUIRE(SameBits(RunGatherCase<Half>(c, set), expected.out));
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
  Spmm<float> op;
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
  RunSpmm(op, 0, 1);
  CHECK(out == (((3.0F + 1.0e8F) + 1.0F) + -1.0e8F) * 2.0F);
}

// Runs `run` on an operation on fixed random numbers, in place.
template <typename Run>
std::vector<float> RunDropoutCase(uint32_t columns, float p, bool relu, const Run& run) {
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
  run(op, 0, static_cast<uint32_t>(nodes.size()));
  return rows;
}

// The definition, an element at a time.
void DropoutByElements(const DropoutRows<float>& op, uint32_t begin, uint32_t end) {
  for (uint32_t r = begin; r < end; ++r) {
    for (uint32_t c = 0; c < op.columns; ++c) {
      float& element = op.rows[r * op.stride + c];
      const PhiloxWords words =
          Philox(KeyOf(op.key.random_seed), CounterOf(Purpose::kDropout, op.key.epoch, op.key.batch,
                                                      op.key.layer, op.nodes[r], c / 4));
      const bool survives = words.word[c % 4] >= op.threshold && !(op.relu && element <= 0.0F);
      element = survives ? op.scale * element : 0.0F;
    }
  }
}

TEST_CASE("every variant of dropout gives the definition's bits and stays in its columns") {
  for (uint32_t columns = 1; columns <= 200; ++columns) {
    for (const float p : {0.3F, 0.5F, 0.97F}) {
      for (const bool relu : {false, true}) {
        const auto expected = RunDropoutCase(columns, p, relu, DropoutByElements);
        for (const InstructionSet set : AvailableInstructionSets()) {
          INFO(NameOf(set), " columns ", columns, " p ", p);
          REQUIRE(SameBits(RunDropoutCase(columns, p, relu, LoopsFor<DropoutLoops>(set).run),
                           expected));
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
  const auto run = LoopsFor<AttentionLoops>(set).of_float;
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
        const auto expected = RunAttentionCase(c, InstructionSet::kPlain);
        for (const InstructionSet set : AvailableInstructionSets()) {
          INFO(NameOf(set), " heads ", heads, " columns ", columns, " v2 ", v2);
          REQUIRE(SameBits(RunAttentionCase(c, set), expected));
        }
      }
    }
  }
}

TEST_CASE("attention's dropout is keyed by destination, position and head, for hubs, too") {
  // Draws of the second row go over two pages of blocks.
  const std::vector<uint32_t> indptr = {0, 3, 200'000};
  const std::vector<uint32_t> nodes = {4'000'000'000U, 7};
  const DropoutKey key{0x123456789ABCDEF, 3, 11, 2};
  const float p = 0.3F;
  AttentionRows<float> op;
  op.indptr = indptr.data();
  op.num_dst = 2;
  op.num_edges = indptr.back();
  op.heads = 3;
  op.weight_scale = 4;
  std::vector<float> alpha(op.heads * op.stride());
  for (size_t i = 0; i < alpha.size(); ++i) alpha[i] = static_cast<float>(i % 1000 + 1);
  std::vector<float> weight(alpha.size(), -7.0F);
  op.alpha = alpha.data();
  DropAttention(op, key, nodes.data(), DropoutThreshold(p), 0, 2, weight.data());
  const DrawStream stream =
      DrawStreamOf({key.random_seed, key.epoch, key.batch}, key.layer, Purpose::kAttentionDropout);
  uint64_t kept = 0;
  for (uint32_t r = 0; r < 2; ++r) {
    for (uint64_t position = 0; position <= indptr[r + 1] - indptr[r]; ++position) {
      for (uint32_t h = 0; h < op.heads; ++h) {
        const uint64_t draw = position * op.heads + h;
        const PhiloxWords words = LongRowWords(stream, nodes[r], draw / 4);
        const uint64_t at =
            h * op.stride() + (position == 0 ? r : op.num_dst + indptr[r] + position - 1);
        const bool survives = UnitDraw(words.word[draw % 4]) >= p;
        REQUIRE(weight[at] == (survives ? 4 * alpha[at] : 0.0F));
        kept += survives ? 1 : 0;
      }
    }
  }
  CHECK(static_cast<double>(kept) == doctest::Approx(600'006 * 0.7).epsilon(0.01));
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
