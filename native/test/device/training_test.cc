#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/draw/dropout.h"
#include "core/kernels/dropout.h"
#include "core/kernels/loss.h"
#include "core/kernels/spmm.h"
#include "core/kernels/transpose.h"
#include "test/cuda/values.h"
#include "test/device/block.h"
#include "test/device/memory.h"

// Kernels of training as the table has them, beside their twins of core/kernels. What has its twin
// in train/ is compared there (test/train/device_test.cc).

namespace gnnd {
namespace {

using test::Arrays;
using test::Block;
using test::Get;
using test::Random;
using test::SameBits;
using test::SimPlugin;

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
      arrays.Call(table.take,
                  gnnd_device_take{arrays.Put(weight), args.transposed_edge, edges, taken});
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

TEST_CASE("a kernel of training names the field that cannot be") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  Arrays arrays(*device);
  const gnnd_device_plugin& table = arrays.table();
  const auto& refused = test::CheckRefused;
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
  refused(
      arrays.Try(table.mean_scales, gnnd_device_mean_scales{words, nullptr, 2, 0, floats, floats}),
      "weight");
  gnnd_device_dropout dropout{};
  dropout.element = GNND_ELEMENT_FLOAT16;
  refused(arrays.Try(table.dropout, dropout), "element");
  refused(
      arrays.Try(table.dropout_gradient, gnnd_device_dropout_gradient{GNND_ELEMENT_FLOAT32, 0, 1,
                                                                      floats, nullptr, 1, floats}),
      "grad");
  refused(arrays.Try(table.sum_rows,
                     gnnd_device_sum_rows{GNND_ELEMENT_FLOAT32, 1, 1, floats, floats, nullptr}),
          "workspace");
  gnnd_device_loss loss{};
  refused(arrays.Try(table.loss, loss), "columns");
}

}  // namespace
}  // namespace gnnd
