#include "core/kernels/attention.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/draw/dropout.h"
#include "core/kernels/transpose.h"
#include "cuda/operators.h"
#include "test/cuda/orders.h"
#include "test/cuda/values.h"

// Blocks, transposed, and attention over them, beside their twins of core/kernels.

namespace gnnd {

using test::Random;
using test::SameBits;

namespace {

struct Block {
  std::vector<uint32_t> indptr{0};
  std::vector<uint32_t> src;
  uint32_t num_src;

  uint32_t num_dst() const { return static_cast<uint32_t>(indptr.size() - 1); }
  uint32_t num_edges() const { return static_cast<uint32_t>(src.size()); }
};

// Destinations are the first sources; some sources are read by many, some by none, and some
// destinations read themselves.
Block RandomBlock(uint64_t seed, uint32_t num_dst, uint32_t num_src, uint32_t max_degree) {
  Random random(seed);
  Block block;
  block.num_src = num_src;
  for (uint32_t d = 0; d < num_dst; ++d) {
    const uint32_t degree = random.Below(5) == 0 ? 0 : random.Below(max_degree + 1);
    for (uint32_t e = 0; e < degree; ++e) {
      const uint32_t kind = random.Below(6);
      block.src.push_back(kind == 0   ? num_src / 2
                          : kind == 1 ? d % num_src
                                      : random.Below(num_src));
    }
    block.indptr.push_back(block.num_edges());
  }
  return block;
}

struct Transposed {
  std::vector<uint32_t> indptr;
  std::vector<uint32_t> dst;
  std::vector<uint32_t> edge;
};

Transposed TransposedOf(const Block& block) {
  std::vector<uint32_t> numbers(block.num_edges());
  std::iota(numbers.begin(), numbers.end(), 0U);
  Transposed out{std::vector<uint32_t>(block.num_src + 1), numbers, numbers};
  TransposeInput<uint32_t> input{block.indptr, block.src, block.num_src, numbers.data(), false};
  TransposeBlock(input, out.indptr.data(), out.dst.data(), out.edge.data());
  return out;
}

}  // namespace

TEST_CASE("blocks are transposed with the edges of a source in order") {
  for (const auto [num_dst, num_src, degree] : std::vector<std::array<uint32_t, 3>>{
           {1, 1, 0}, {1, 1, 40}, {33, 64, 5}, {200, 65, 30}, {300, 5000, 12}, {900, 300000, 9}}) {
    const Block block = RandomBlock(num_src, num_dst, num_src, degree);
    const Transposed wanted = TransposedOf(block);
    const uint32_t edges = block.num_edges();
    CAPTURE(edges);
    test::InOrders([&](uint32_t order) {
      Transposed got{std::vector<uint32_t>(num_src + 1, 7), std::vector<uint32_t>(edges, 7),
                     std::vector<uint32_t>(edges, 7)};
      std::vector<uint32_t> work(cuda::TransposeWords(edges));
      const cuda::Queue queue{nullptr, 1 + order};
      cuda::Transpose(queue,
                      {block.indptr.data(), block.src.data(), num_dst, num_src, edges,
                       got.indptr.data(), got.dst.data(), got.edge.data()},
                      work.data());
      CHECK(got.indptr == wanted.indptr);
      CHECK(got.dst == wanted.dst);
      CHECK(got.edge == wanted.edge);
      const auto weight = Random(4).Many<float>(edges);
      std::vector<float> taken(edges);
      cuda::TakeByIndex(queue, weight.data(), got.edge.data(), edges, taken.data());
      for (uint32_t k = 0; k < edges; ++k) CHECK(taken[k] == weight[wanted.edge[k]]);
    });
  }
}

namespace {

// All outputs of attention in one place.
struct AttentionResult {
  std::vector<float> alpha;
  std::vector<float> weight;
  std::vector<float> grad_score;
  std::vector<float> grad_destination;
  std::vector<float> grad_attention;
  std::vector<float> grad_source;
};

class AttentionCase {
 public:
  AttentionCase(uint32_t heads, uint32_t columns, bool v2, bool listed)
      : block_(RandomBlock(heads * 100 + columns, 150, 230, 12)),
        transposed_(TransposedOf(block_)),
        v2_(v2) {
    Random random(columns);
    const uint64_t width = uint64_t{heads} * columns;
    const uint32_t dst = block_.num_dst();
    for (const uint64_t size :
         {block_.num_src * width, block_.num_src * uint64_t{heads}, uint64_t{dst} * heads,
          dst * width, width, dst * width, block_.num_src * width}) {
      inputs_.push_back(random.Many<float>(size));
      for (float& value : inputs_.back()) value *= 0.02F;
    }
    op_.indptr = block_.indptr.data();
    op_.index = block_.src.data();
    for (uint32_t d = 0; d < dst; ++d) self_.push_back(random.Below(block_.num_src));
    op_.self_index = listed ? self_.data() : nullptr;
    op_.num_dst = dst;
    op_.num_edges = block_.num_edges();
    op_.num_src = block_.num_src;
    op_.heads = heads;
    op_.columns = columns;
    op_.source = inputs_[0].data();
    op_.source_score = v2 ? nullptr : inputs_[1].data();
    op_.destination_score = v2 ? nullptr : inputs_[2].data();
    op_.destination = v2 ? inputs_[3].data() : nullptr;
    op_.attention = v2 ? inputs_[4].data() : nullptr;
    op_.grad_out = inputs_[5].data();
    op_.weight_scale = 1.0F / 0.7F;
    op_.transposed_indptr = transposed_.indptr.data();
    op_.transposed_dst = transposed_.dst.data();
    op_.transposed_edge = transposed_.edge.data();
    nodes_.resize(dst);
    for (uint32_t& node : nodes_) node = random.Below(0xFFFFFFFF);
  }

  // run is a struct of the twin's functions or the device's.
  template <typename Run>
  AttentionResult All(const Run& run) {
    AttentionResult result;
    const uint64_t width = uint64_t{op_.heads} * op_.columns;
    result.alpha.resize(op_.heads * op_.stride());
    result.weight.resize(result.alpha.size());
    result.grad_score.resize(result.alpha.size());
    result.grad_destination.resize(op_.num_dst * width);
    result.grad_attention.resize(width);
    result.grad_source = inputs_[6];
    op_.alpha = result.alpha.data();
    op_.grad_score = result.grad_score.data();
    op_.grad_destination = result.grad_destination.data();
    op_.grad_attention = result.grad_attention.data();
    op_.grad_source = result.grad_source.data();
    run.Pass(op_, AttentionPass::kForward, op_.num_dst);
    run.Drop(op_, DropoutKey{5, 6, 7, 2}, nodes_.data(), DropoutThreshold(0.3F),
             result.weight.data());
    op_.weight = result.weight.data();
    run.Pass(op_, AttentionPass::kBackward, op_.num_dst);
    if (v2_) {
      run.Vector(op_);
      if (op_.self_index == nullptr) {
        run.Pass(op_, AttentionPass::kBackwardSrc, static_cast<uint32_t>(op_.num_src));
      }
    }
    return result;
  }

 private:
  Block block_;
  Transposed transposed_;
  bool v2_;
  std::vector<std::vector<float>> inputs_;
  std::vector<uint32_t> self_;
  std::vector<uint32_t> nodes_;
  AttentionRows<float> op_;
};

struct AttentionTwin {
  void Pass(const AttentionRows<float>& op, AttentionPass pass, uint32_t rows) const {
    // The vector's gradients are taken in groups of 64 rows, as training does.
    if (pass != AttentionPass::kBackward || op.source_score != nullptr) {
      return RunAttention(op, pass, 0, rows);
    }
    const uint64_t width = uint64_t{op.heads} * op.columns;
    std::vector<float> total(width);
    for (uint32_t begin = 0; begin < rows; begin += 64) {
      std::vector<float> sums(width);
      AttentionRows<float> group = op;
      group.grad_attention = sums.data();
      RunAttention(group, pass, begin, std::min(rows, begin + 64));
      for (uint64_t c = 0; c < width; ++c) total[c] += sums[c];
    }
    std::copy(total.begin(), total.end(), op.grad_attention);
  }
  void Drop(const AttentionRows<float>& op, const DropoutKey& key, const uint32_t* nodes,
            uint64_t threshold, float* weight) const {
    DropAttention(op, key, nodes, threshold, 0, op.num_dst, weight);
  }
  void Vector(const AttentionRows<float>&) const {}
};

struct AttentionOnDevice {
  cuda::Queue queue;

  void Pass(const AttentionRows<float>& op, AttentionPass pass, uint32_t rows) const {
    cuda::RunAttention(queue, op, pass, 0, rows / 3);
    cuda::RunAttention(queue, op, pass, rows / 3, rows);
  }
  void Drop(const AttentionRows<float>& op, const DropoutKey& key, const uint32_t* nodes,
            uint64_t threshold, float* weight) const {
    cuda::DropAttention(queue, op, key, nodes, threshold, 0, op.num_dst, weight);
  }
  void Vector(const AttentionRows<float>& op) const {
    const uint64_t width = uint64_t{op.heads} * op.columns;
    std::vector<float> partial(cuda::AttentionVectorFloats(op.num_dst, width));
    cuda::AttentionVector(queue, op, partial.data());
  }
};

}  // namespace

TEST_CASE("attention has the processor's bits, forward and backward, of both kinds") {
  for (const bool v2 : {false, true}) {
    for (const bool listed : {false, true}) {
      for (const auto [heads, columns] :
           std::vector<std::array<uint32_t, 2>>{{1, 1}, {1, 8}, {2, 7}, {4, 13}, {8, 16}}) {
        CAPTURE(v2);
        CAPTURE(columns);
        AttentionCase attention(heads, columns, v2, listed);
        const AttentionResult wanted = attention.All(AttentionTwin{});
        test::InOrders([&](uint32_t order) {
          const AttentionResult got = attention.All(AttentionOnDevice{{nullptr, 1 + order}});
          CHECK(SameBits(got.alpha, wanted.alpha));
          CHECK(SameBits(got.weight, wanted.weight));
          CHECK(SameBits(got.grad_score, wanted.grad_score));
          CHECK(SameBits(got.grad_destination, wanted.grad_destination));
          CHECK(SameBits(got.grad_attention, wanted.grad_attention));
          CHECK(SameBits(got.grad_source, wanted.grad_source));
        });
      }
    }
  }
}

}  // namespace gnnd
