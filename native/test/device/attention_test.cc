#include "core/kernels/attention.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <list>
#include <map>
#include <numeric>
#include <vector>

#include "core/draw/dropout.h"
#include "core/kernels/transpose.h"
#include "test/cuda/values.h"
#include "test/device/block.h"
#include "test/device/memory.h"

// Attention as the table has it, beside its twins of core/kernels, and what follows layers.

namespace gnnd {
namespace {

using test::Arrays;
using test::Block;
using test::Random;
using test::SimPlugin;

// One attention on both sides: `op` over the processor's arrays, `args` over the device's.
struct Attention {
  Attention(const Device& device, uint32_t num_dst, uint32_t num_src, bool is_sum)
      : arrays(device), random(num_dst * 10 + num_src), block(&random, num_dst, num_src, 6) {
    op.indptr = block.indptr.data();
    op.index = block.src.data();
    op.num_dst = args.num_dst = num_dst;
    op.num_src = args.num_src = num_src;
    op.num_edges = args.num_edges = block.src.size();
    op.heads = args.heads = 3;
    op.columns = args.columns = 11;
    args.indptr = arrays.Put(block.indptr);
    args.index = arrays.Put(block.src);
    const uint64_t width = uint64_t{op.heads} * op.columns;
    const uint64_t slots = op.heads * op.stride();
    In(&op.source, &args.source, num_src * width);
    if (is_sum) {
      In(&op.destination, &args.destination, num_dst * width);
      In(&op.attention, &args.attention, width);
    } else {
      In(&op.source_score, &args.source_score, uint64_t{op.heads} * num_src);
      In(&op.destination_score, &args.destination_score, uint64_t{op.heads} * num_dst);
    }
    In(&op.grad_out, &args.grad_out, num_dst * width);
    Out(&op.alpha, &args.alpha, slots);
    Out(&op.grad_score, &args.grad_score, slots);
    Out(&op.grad_destination, &args.grad_destination, num_dst * width);
    Out(&op.grad_attention, &args.grad_attention, width);
    Out(&op.grad_source, &args.grad_source, num_src * width);
    Out(&weight, &device_weight, slots);
    const uint64_t bytes = arrays.table().sum_workspace_bytes(num_dst, width);
    args.workspace = arrays.Bytes(bytes);
  }

  void In(const float** host, const float** there, uint64_t size) {
    kept.push_back(random.Many<float>(size));
    *host = kept.back().data();
    *there = arrays.Put(kept.back());
  }
  void Out(float** host, float** there, uint64_t size) {
    kept.emplace_back(size, 0.0F);
    *host = kept.back().data();
    *there = arrays.Put(kept.back());
    sizes[*host] = size;
  }
  void CheckSame(const float* host, const float* there) {
    const std::vector<float> wanted(host, host + sizes.at(host));
    CHECK(test::SameOrNan(arrays.Take(there, wanted.size()), wanted));
  }

  Arrays arrays;
  Random random;
  Block block;
  AttentionRows<float> op;
  gnnd_device_attention args{};
  float* weight = nullptr;
  float* device_weight = nullptr;
  std::list<std::vector<float>> kept;
  std::map<const float*, uint64_t> sizes;
};

void CheckAttention(const Device& device, uint32_t num_dst, uint32_t num_src, bool is_sum) {
  Attention both(device, num_dst, num_src, is_sum);
  const gnnd_device_plugin& table = both.arrays.table();
  RunAttention(both.op, AttentionPass::kForward, 0, num_dst);
  both.arrays.Call(table.attention, both.args);
  both.CheckSame(both.op.alpha, both.args.alpha);

  std::vector<uint32_t> nodes(num_dst);
  for (uint32_t& node : nodes) node = both.random.Below(0xFFFFFFFF);
  both.op.weight_scale = 1.25F;
  both.args.weight_scale = 1.25;
  const DropoutKey key{99, 1, 2, 3};
  DropAttention(both.op, key, nodes.data(), DropoutThreshold(0.2F), 0, num_dst, both.weight);
  gnnd_device_drop_attention drop{
      both.args,         99, 1, 2, 3, 0, both.arrays.Put(nodes), DropoutThreshold(0.2F),
      both.device_weight};
  both.arrays.Call(table.drop_attention, drop);
  both.CheckSame(both.weight, both.device_weight);

  both.op.weight = both.weight;
  both.args.weight = both.device_weight;
  both.args.pass = 1;
  // The twin adds to grad_attention: group by group, then the groups.
  std::vector<float> total(uint64_t{both.op.heads} * both.op.columns, 0.0F);
  for (uint32_t begin = 0; begin < num_dst; begin += 64) {
    std::vector<float> sums(total.size(), 0.0F);
    AttentionRows<float> mine = both.op;
    mine.grad_attention = sums.data();
    RunAttention(mine, AttentionPass::kBackward, begin, std::min(num_dst, begin + 64));
    for (size_t c = 0; c < total.size(); ++c) total[c] += sums[c];
  }
  both.arrays.Call(table.attention, both.args);
  both.CheckSame(both.op.grad_score, both.args.grad_score);
  if (!is_sum) return;
  both.CheckSame(both.op.grad_destination, both.args.grad_destination);
  std::copy(total.begin(), total.end(), both.op.grad_attention);
  both.CheckSame(both.op.grad_attention, both.args.grad_attention);

  std::vector<uint32_t> numbers(both.block.src.size());
  std::iota(numbers.begin(), numbers.end(), 0U);
  std::vector<uint32_t> indptr(uint64_t{num_src} + 1);
  std::vector<uint32_t> dst(numbers.size());
  std::vector<uint32_t> edge(numbers.size());
  TransposeInput<uint32_t> in;
  in.indptr = both.block.indptr;
  in.src = both.block.src;
  in.num_src = num_src;
  in.weight = numbers.data();
  TransposeBlock(in, indptr.data(), dst.data(), edge.data());
  both.op.transposed_indptr = indptr.data();
  both.op.transposed_dst = dst.data();
  both.op.transposed_edge = edge.data();
  both.args.transposed_indptr = both.arrays.Put(indptr);
  both.args.transposed_dst = both.arrays.Put(dst);
  both.args.transposed_edge = both.arrays.Put(edge);
  both.args.pass = 2;
  RunAttention(both.op, AttentionPass::kBackwardSrc, 0, num_src);
  both.arrays.Call(table.attention, both.args);
  both.CheckSame(both.op.grad_source, both.args.grad_source);
}

TEST_CASE("every pass of attention has the processor's bits, GAT's and GATv2's") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  for (const bool is_sum : {false, true}) {
    CAPTURE(is_sum);
    CheckAttention(*device, 0, 0, is_sum);
    CheckAttention(*device, 0, 3, is_sum);
    CheckAttention(*device, 1, 1, is_sum);
    CheckAttention(*device, 150, 260, is_sum);
  }
}

TEST_CASE("a kernel of attention or after layers names the field that cannot be") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  Arrays arrays(*device);
  const gnnd_device_plugin& table = arrays.table();
  const auto& refused = test::CheckRefused;
  auto* const floats = arrays.Room<float>(64);
  gnnd_device_attention attention{};
  attention.pass = 3;
  refused(arrays.Try(table.attention, attention), "pass");
  attention.pass = 0;
  refused(arrays.Try(table.attention, attention), "heads");
  gnnd_device_drop_attention drop{};
  drop.attention.heads = 1;
  drop.threshold = uint64_t{1} << 33;
  refused(arrays.Try(table.drop_attention, drop), "threshold");
  gnnd_device_score_sums sums{};
  sums.rows = sums.heads = 1;
  sums.num_dst = 1;
  refused(arrays.Try(table.score_sums, sums), "grad_score");
  refused(arrays.Try(table.heads, gnnd_device_heads{7, 0, 1, 1, nullptr, floats, nullptr, nullptr}),
          "operation");
  refused(arrays.Try(table.activation, gnnd_device_activation_rows{4, 1, 1, nullptr, floats}),
          "activation");
  gnnd_device_norm_rows norm{};
  norm.norm = GNND_NORM_LAYER;
  norm.columns = 1;
  refused(arrays.Try(table.norm, norm), "scale");
}

}  // namespace
}  // namespace gnnd
