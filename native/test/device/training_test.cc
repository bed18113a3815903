#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "core/draw/dropout.h"
#include "core/kernels/attention.h"
#include "core/kernels/dropout.h"
#include "core/kernels/loss.h"
#include "core/kernels/optimizer.h"
#include "core/kernels/spmm.h"
#include "core/kernels/transpose.h"
#include "test/cuda/values.h"
#include "test/device/memory.h"

// Kernels of training as the table has them, beside their twins of core/kernels. What has its twin
// in train/ is compared there (test/train/device_test.cc).

namespace gnnd {
namespace {

using test::Arrays;
using test::Get;
using test::Random;
using test::SameBits;
using test::SimPlugin;

// A block whose rows have up to so many edges.
struct Block {
  Block(Random* random, uint32_t num_dst, uint32_t sources, uint32_t max_degree)
      : num_src(sources) {
    for (uint32_t d = 0; d < num_dst; ++d) {
      const uint32_t degree = num_src == 0 ? 0 : random->Below(max_degree + 1);
      for (uint32_t e = 0; e < degree; ++e) src.push_back(random->Below(num_src));
      indptr.push_back(static_cast<uint32_t>(src.size()));
    }
  }
  uint32_t num_dst() const { return static_cast<uint32_t>(indptr.size() - 1); }

  uint32_t num_src;
  std::vector<uint32_t> indptr{0};
  std::vector<uint32_t> src;
};

template <typename T, typename Element, typename Out>
void CheckSums(const Device& device, uint32_t element, uint32_t out_element) {
  for (const uint32_t rows : {0U, 1U, 60U}) {
    for (const uint32_t columns : {0U, 1U, 37U}) {
      CAPTURE(rows);
      CAPTURE(columns);
      Random random(rows * 100 + columns);
      const Block block(&random, rows, 70, 8);
      const auto x = random.Many<Element>(uint64_t{block.num_src} * (columns + 1));
      const auto weight = random.Many<T>(block.src.size());
      const auto scale = random.Many<T>(rows);
      Spmm<T, Element, Out> op;
      op.x = op.self = x.data();
      op.x_stride = op.self_stride = columns + 1;
      op.columns = columns;
      op.indptr = block.indptr.data();
      op.index = block.src.data();
      op.weight = weight.data();
      op.self_rows = rows / 2;
      op.self_weight = scale.data();
      op.scale = scale.data();
      std::vector<Out> wanted(uint64_t{rows} * (columns + 2), Out{});
      Arrays arrays(device);
      Out* const out = arrays.Put(wanted);
      op.out = wanted.data();
      op.out_stride = columns + 2;
      RunSpmm(op, 0, rows);
      gnnd_device_spmm args{};
      args.element = element;
      args.out_element = out_element;
      args.rows = rows;
      args.columns = columns;
      args.x = args.self = arrays.Put(x);
      args.x_stride = args.self_stride = columns + 1;
      args.indptr = arrays.Put(block.indptr);
      args.index = arrays.Put(block.src);
      args.weight = arrays.Put(weight);
      args.self_rows = rows / 2;
      args.self_weight = args.scale = arrays.Put(scale);
      args.out = out;
      args.out_stride = columns + 2;
      arrays.Call(arrays.table().spmm, args);
      CHECK(SameBits(arrays.Take(out, wanted.size()), wanted));
    }
  }
}

TEST_CASE("sums over edges have the processor's bits, of every type") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  CheckSums<float, float, float>(*device, GNND_ELEMENT_FLOAT32, GNND_ELEMENT_FLOAT32);
  CheckSums<float, Half, float>(*device, GNND_ELEMENT_FLOAT16, GNND_ELEMENT_FLOAT32);
  CheckSums<double, double, double>(*device, GNND_ELEMENT_FLOAT64, GNND_ELEMENT_FLOAT64);
  CheckSums<float, Bfloat16, Bfloat16>(*device, GNND_ELEMENT_BFLOAT16, GNND_ELEMENT_BFLOAT16);
  CheckSums<float, float, Bfloat16>(*device, GNND_ELEMENT_FLOAT32, GNND_ELEMENT_BFLOAT16);
  CheckSums<float, Half, Bfloat16>(*device, GNND_ELEMENT_FLOAT16, GNND_ELEMENT_BFLOAT16);
}

TEST_CASE("a block's transpose is the processor's, its weights too") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  for (const uint32_t num_dst : {0U, 1U, 200U}) {
    for (const uint32_t num_src : {0U, 1U, 300U}) {
      if (num_src < num_dst) continue;
      CAPTURE(num_dst);
      CAPTURE(num_src);
      Random random(num_dst + num_src);
      const Block block(&random, num_dst, num_src, 9);
      const uint64_t edges = block.src.size();
      const auto weight = random.Many<float>(edges);
      std::vector<uint32_t> indptr(uint64_t{num_src} + 1);
      std::vector<uint32_t> dst(edges);
      std::vector<float> moved(edges);
      TransposeInput<float> in;
      in.indptr = block.indptr;
      in.src = block.src;
      in.num_src = num_src;
      in.weight = weight.data();
      TransposeBlock(in, indptr.data(), dst.data(), moved.data());

      Arrays arrays(*device);
      const gnnd_device_plugin& table = arrays.table();
      gnnd_device_transpose args{};
      args.indptr = arrays.Put(block.indptr);
      args.src = arrays.Put(block.src);
      args.num_dst = num_dst;
      args.num_src = num_src;
      args.num_edges = edges;
      args.transposed_indptr = arrays.Room<uint32_t>(indptr.size());
      args.transposed_dst = arrays.Room<uint32_t>(edges);
      args.transposed_edge = arrays.Room<uint32_t>(edges);
      args.workspace = arrays.Bytes(table.transpose_workspace_bytes(num_dst, num_src, edges));
      arrays.Call(table.transpose, args);
      float* const taken = arrays.Room<float>(edges);
      arrays.Call(table.take, gnnd_device_take{arrays.Put(weight), args.transposed_edge, edges,
                                               taken});
      CHECK(arrays.Take(args.transposed_indptr, indptr.size()) == indptr);
      CHECK(arrays.Take(args.transposed_dst, edges) == dst);
      CHECK(SameBits(arrays.Take(taken, edges), moved));
    }
  }
}

template <typename T, typename Scale>
void CheckDropout(const Device& device, uint32_t element) {
  for (const uint32_t rows : {0U, 1U, 50U}) {
    for (const float p : {0.0F, 0.4F}) {
      constexpr uint32_t kColumns = 13;
      Random random(rows);
      auto values = random.Many<T>(uint64_t{rows} * (kColumns + 1));
      std::vector<uint32_t> nodes(rows);
      for (uint32_t& node : nodes) node = random.Below(0xFFFFFFFF);
      Arrays arrays(device);
      DropoutRows<T, Scale> op;
      op.key = {0x123456789ABCDEF0, 5, 6, 2};
      op.nodes = nodes.data();
      op.stride = kColumns + 1;
      op.columns = kColumns;
      op.threshold = DropoutThreshold(p);
      op.scale = Scale{1} / (Scale{1} - static_cast<Scale>(p));
      op.relu = true;
      gnnd_device_dropout args{};
      args.element = element;
      args.rows = rows;
      args.columns = kColumns;
      args.relu = 1;
      args.random_seed = op.key.random_seed;
      args.epoch = op.key.epoch;
      args.batch = op.key.batch;
      args.layer = op.key.layer;
      args.nodes = arrays.Put(nodes);
      T* const in_out = arrays.Put(values);
      args.in_out = in_out;
      args.stride = op.stride;
      args.threshold = op.threshold;
      args.scale = op.scale;
      op.rows = values.data();
      RunDropout(op, 0, rows);
      arrays.Call(arrays.table().dropout, args);
      CHECK(SameBits(arrays.Take(in_out, values.size()), values));
    }
  }
}

TEST_CASE("dropout has the processor's bits, of every type") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  CheckDropout<float, float>(*device, GNND_ELEMENT_FLOAT32);
  CheckDropout<double, double>(*device, GNND_ELEMENT_FLOAT64);
  CheckDropout<Bfloat16, float>(*device, GNND_ELEMENT_BFLOAT16);
}

TEST_CASE("what losses are made of is the processor's, and so are gradients") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  for (const uint32_t rows : {0U, 1U, 40U}) {
    for (const uint32_t columns : {1U, 5U, 47U}) {
      CAPTURE(rows);
      CAPTURE(columns);
      Random random(rows + columns);
      const uint64_t stride = columns + 2;
      const auto logits = random.Many<float>(rows * stride);
      std::vector<uint32_t> labels(rows);
      for (uint32_t& label : labels) label = random.Below(columns);
      std::vector<float> grad(rows * stride, 0.0F);
      std::vector<double> losses(rows);
      std::vector<uint32_t> best(rows);
      Arrays arrays(*device);
      gnnd_device_loss args{};
      args.rows = rows;
      args.columns = columns;
      args.logits = arrays.Put(logits);
      args.stride = stride;
      args.labels = arrays.Put(labels);
      args.grad = arrays.Put(grad);
      args.exp_sums = arrays.Room<double>(rows);
      args.margins = arrays.Room<float>(rows);
      args.best = arrays.Room<uint32_t>(rows);
      arrays.Call(arrays.table().loss, args);
      for (uint32_t r = 0; r < rows; ++r) {
        const std::span row(logits.data() + r * stride, columns);
        losses[r] = CrossEntropy(row, labels[r], grad.data() + r * stride);
        best[r] = ArgMax(row);
      }
      const auto exp_sums = arrays.Take(args.exp_sums, rows);
      const auto margins = arrays.Take(args.margins, rows);
      std::vector<double> got(rows);
      for (uint32_t r = 0; r < rows; ++r) {
        got[r] = LossOf(exp_sums[r], static_cast<double>(margins[r]));
      }
      CHECK(SameBits(got, losses));
      CHECK(SameBits(arrays.Take(args.grad, grad.size()), grad));
      CHECK(arrays.Take(args.best, rows) == best);
    }
  }
}

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
  gnnd_device_drop_attention drop{both.args, 99, 1, 2, 3, 0, both.arrays.Put(nodes),
                                  DropoutThreshold(0.2F), both.device_weight};
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

TEST_CASE("a step of every optimizer has the processor's bits") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  ParameterManifest manifest;
  for (const uint32_t rows : {1U, 7U, 40U}) {
    ParameterTensor tensor;
    tensor.name = std::to_string(rows);
    tensor.rows = rows;
    tensor.cols = 5;
    tensor.layer = rows == 1 ? 0 : 1;
    Append(tensor, &manifest);
  }
  for (const OptimizerType type :
       {OptimizerType::kAdam, OptimizerType::kAdamW, OptimizerType::kSgd}) {
    for (const double clip : {0.0, 0.5}) {
      OptimizerOptions options;
      options.type = type;
      options.momentum = 0.9;
      options.nesterov = type == OptimizerType::kSgd;
      options.weight_decay = 0.01;
      options.weight_decay_scope = WeightDecayScope::kFirstLayer;
      options.clip_norm = clip;
      Random random(static_cast<uint64_t>(type));
      const uint64_t floats = manifest.num_floats;
      const std::vector<std::vector<float>> gradients = {random.Many<float>(floats),
                                                         random.Many<float>(floats)};
      const std::vector<std::span<const float>> views(gradients.begin(), gradients.end());
      const auto parameters = random.Many<float>(floats);
      auto memory = random.Many<float>(2 * floats);
      for (float& value : memory) value = std::abs(value);
      std::vector<float> next(floats);
      std::vector<float> next_memory(2 * floats);
      RunOptimizer(manifest, options, {views, 64, 3, parameters, memory, next, next_memory});

      Arrays arrays(*device);
      std::vector<gnnd_device_tensor> tensors;
      for (size_t t = 0; t < manifest.tensors.size(); ++t) {
        const ParameterTensor& tensor = manifest.tensors[t];
        const uint64_t end =
            t + 1 == manifest.tensors.size() ? floats : manifest.tensors[t + 1].offset;
        tensors.push_back({tensor.offset, tensor.size(), end - tensor.offset,
                           Decays(options, tensor) ? 1U : 0U, 0});
      }
      gnnd_device_optimizer args{};
      args.type = static_cast<uint32_t>(type);
      args.nesterov = options.nesterov ? 1 : 0;
      args.learning_rate = options.learning_rate;
      args.beta1 = options.beta1;
      args.beta2 = options.beta2;
      args.epsilon = options.epsilon;
      args.momentum = options.momentum;
      args.weight_decay = options.weight_decay;
      args.clip_norm = clip;
      args.step = 3;
      args.num_seeds = 64;
      args.num_floats = floats;
      args.num_gradients = 2;
      args.num_tensors = static_cast<uint32_t>(tensors.size());
      args.gradients[0] = arrays.Put(gradients[0]);
      args.gradients[1] = arrays.Put(gradients[1]);
      args.tensors = tensors.data();
      args.parameters_in = arrays.Put(parameters);
      args.memory_in = arrays.Put(memory);
      args.parameters_out = arrays.Room<float>(floats);
      args.memory_out = arrays.Room<float>(2 * floats);
      args.clip = arrays.Room<float>(1);
      arrays.Call(arrays.table().optimizer, args);
      CHECK(SameBits(arrays.Take(args.parameters_out, floats), next));
      CHECK(SameBits(arrays.Take(args.memory_out, 2 * floats), next_memory));
    }
  }
}

TEST_CASE("a kernel of training names the field that cannot be") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  Arrays arrays(*device);
  const gnnd_device_plugin& table = arrays.table();
  const auto refused = [](const Status& status, const std::string& field) {
    INFO(field);
    CHECK(status.code() == Code::kInternal);
    INFO(status.message());
    CHECK(status.message().find("field " + field + " ") != std::string::npos);
  };
  auto* const words = arrays.Room<uint32_t>(64);
  auto* const floats = reinterpret_cast<float*>(words);
  gnnd_device_spmm spmm{};
  spmm.element = spmm.out_element = GNND_ELEMENT_FLOAT32;
  spmm.rows = spmm.columns = 2;
  spmm.x_stride = spmm.out_stride = 2;
  spmm.x = spmm.out = floats;
  refused(arrays.Try(table.spmm, spmm), "indptr");
  spmm.indptr = words;
  spmm.out_element = GNND_ELEMENT_FLOAT16;
  refused(arrays.Try(table.spmm, spmm), "out_element");
  spmm.out_element = GNND_ELEMENT_FLOAT32;
  spmm.out_stride = 1;
  refused(arrays.Try(table.spmm, spmm), "out_stride");
  gnnd_device_transpose transpose{};
  transpose.num_edges = uint64_t{1} << 32;
  refused(arrays.Try(table.transpose, transpose), "num_edges");
  refused(arrays.Try(table.take, gnnd_device_take{floats, nullptr, 1, floats}), "index");
  refused(arrays.Try(table.mean_scales,
                     gnnd_device_mean_scales{words, nullptr, 2, 0, floats, floats}),
          "weight");
  gnnd_device_dropout dropout{};
  dropout.element = GNND_ELEMENT_FLOAT16;
  refused(arrays.Try(table.dropout, dropout), "element");
  refused(arrays.Try(table.dropout_gradient,
                     gnnd_device_dropout_gradient{GNND_ELEMENT_FLOAT32, 0, 1, floats, nullptr, 1,
                                                  floats}),
          "grad");
  refused(arrays.Try(table.sum_rows, gnnd_device_sum_rows{GNND_ELEMENT_FLOAT32, 1, 1, floats,
                                                          floats, nullptr}),
          "workspace");
  gnnd_device_loss loss{};
  refused(arrays.Try(table.loss, loss), "columns");
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
  gnnd_device_optimizer optimizer{};
  refused(arrays.Try(table.optimizer, optimizer), "num_gradients");
  optimizer.num_gradients = 1;
  optimizer.num_seeds = optimizer.step = 1;
  refused(arrays.Try(table.optimizer, optimizer), "optimizer");
}

}  // namespace
}  // namespace gnnd
