// Compares mean aggregation over a sampled block with torch's formulations of it.
//
//   aggregate_bench [ROUNDS]      (21 rounds)
//
// Two blocks of a batch of 1,024 seeds with fanouts 10 and 25; widths 100, 128 and 256; float32,
// one thread. Forward: "gnnd" writes into warm memory, as in a Trainer; "gnnd_fresh" into a new
// tensor, as torch's do. "probe" only touches every line of the rows in the order of the edges,
// with the rows ahead prefetched: the floor of anything that reads a row per edge. Backward:
// gradient in the sources; "gnnd" includes the transposition of the block; torch.sparse gets A^T
// for nothing. Everything is measured in turn, in the same rounds; medians count. A table, then one
// line of JSON per case.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bench_util.h"
#include "core/base/check.h"
#include "train/ops/ops.h"

namespace gnnd::bench {
namespace {

constexpr uint32_t kGraphNodes = 1'000'000;
constexpr uint32_t kSeeds = 1024;

// Keeps results from being optimised away.
volatile float sink = 0;

at::Tensor Ids(std::span<const uint32_t> values) {
  at::Tensor ids = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  for (size_t i = 0; i < values.size(); ++i) ids.data_ptr<int64_t>()[i] = values[i];
  return ids;
}

RowTable TableOf(const at::Tensor& x) {
  const auto elements = static_cast<uint64_t>(x.numel());
  return {std::span(x.const_data_ptr<float>(), elements), static_cast<uint64_t>(x.size(1))};
}

// A block in the forms that torch needs.
struct TorchBlock {
  explicit TorchBlock(const BlockView& block)
      : num_dst(block.num_dst),
        num_src(block.num_src),
        indptr(Ids(block.indptr)),
        src(Ids(block.src)) {
    const at::Tensor degree = indptr.slice(0, 1) - indptr.slice(0, 0, num_dst);
    dst = at::repeat_interleave(at::arange(num_dst, at::kLong), degree);
    inverse = degree.clamp_min(1).to(at::kFloat).reciprocal();
    weight = inverse.index_select(0, dst);
    matrix = at::sparse_csr_tensor(indptr, src, weight, {num_dst, num_src},
                                   at::TensorOptions().dtype(at::kFloat).layout(at::kSparseCsr));
    const at::TensorOptions sparse = at::TensorOptions().dtype(at::kFloat).layout(at::kSparse);
    transposed = at::sparse_coo_tensor(at::stack({src, dst}), weight, {num_src, num_dst}, sparse)
                     .coalesce()
                     .to_sparse_csr();
  }

  int64_t num_dst;
  int64_t num_src;
  at::Tensor indptr;
  at::Tensor src;
  at::Tensor dst;
  at::Tensor inverse;
  at::Tensor weight;
  at::Tensor matrix;
  at::Tensor transposed;
};

float Probe(const BlockView& block, const float* x, uint64_t columns) {
  constexpr uint64_t kAhead = 12;
  float sum = 0;
  for (uint64_t e = 0; e < block.src.size(); ++e) {
    if (e + kAhead < block.src.size()) {
      const float* ahead = x + block.src[e + kAhead] * columns;
      for (uint64_t c = 0; c < columns; c += 16) __builtin_prefetch(ahead + c);
    }
    const float* row = x + block.src[e] * columns;
    for (uint64_t c = 0; c < columns; c += 16) sum += row[c];
  }
  return sum;
}

struct Entry {
  std::string name;
  std::function<at::Tensor()> run;
  std::vector<double> times = {};
  at::Tensor result = {};
};

double MaxDifference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

void Report(const char* direction, const char* name, const BlockView& block, int64_t columns,
            std::vector<Entry>* entries, uint32_t rounds) {
  for (uint32_t round = 0; round <= rounds; ++round) {
    for (Entry& entry : *entries) {
      static_cast<void>(entry.run());  // so that each run finds the caches as it leaves them itself
      const double start = Milliseconds();
      at::Tensor result = entry.run();
      const double took = Milliseconds() - start;
      if (round == 0) {
        entry.result = std::move(result).clone();  // the first round only warms up and checks
      } else {
        entry.times.push_back(took);
      }
    }
  }
  double best = 1e300;
  std::string json;
  for (const Entry& entry : *entries) {
    const bool ours = entry.name.starts_with("gnnd");
    const bool computes = entry.name != "probe";
    if (computes) GNND_CHECK(MaxDifference(entry.result, entries->front().result) < 1e-3);
    const double median = Median(entry.times);
    if (!ours && computes) best = std::min(best, median);
    std::printf("%-9s %-7s %4ld  %-22s %9.3f ms\n", direction, name, static_cast<long>(columns),
                entry.name.c_str(), median);
    json += ",\"" + entry.name + "_ms\":" + std::to_string(median);
  }
  const double ratio = best / Median(entries->front().times);
  std::printf("%-9s %-7s %4ld  best of torch / gnnd    %9.2f\n", direction, name,
              static_cast<long>(columns), ratio);
  std::printf(
      "{\"bench\":\"aggregate\",\"direction\":\"%s\",\"block\":\"%s\",\"num_dst\":%u,"
      "\"num_src\":%u,\"edges\":%zu,\"columns\":%ld,\"rounds\":%u,\"ratio\":%.3f%s}\n",
      direction, name, block.num_dst, block.num_src, block.src.size(), static_cast<long>(columns),
      rounds, ratio, json.c_str());
}

void Forward(const char* name, const BlockView& block, const TorchBlock& torch, int64_t columns,
             uint32_t rounds) {
  const at::Tensor x = at::randn({block.num_src, columns});
  Workspace warm;
  std::vector<Entry> entries;
  entries.push_back({"gnnd", [&] {
                       warm.Reset();
                       return BlockOperand<float>(block, Reduction::kMean, &warm).Aggregate(x);
                     }});
  entries.push_back({"gnnd_fresh", [&] {
                       warm.Reset();
                       at::Tensor out = at::empty({block.num_dst, columns});
                       BlockOperand<float>(block, Reduction::kMean, &warm)
                           .AggregateFromTable(TableOf(x), block.src.data(), nullptr,
                                               out.data_ptr<float>());
                       return out;
                     }});
  entries.push_back({"probe", [&] {
                       sink =
                           Probe(block, x.const_data_ptr<float>(), static_cast<uint64_t>(columns));
                       return at::Tensor(x);
                     }});
  entries.push_back({"sparse_mm", [&] { return torch.matrix.mm(x); }});
  entries.push_back({"embedding_bag", [&] {
                       return std::get<0>(at::embedding_bag(
                           x, torch.src, torch.indptr.slice(0, 0, torch.num_dst), false, 1));
                     }});
  entries.push_back({"index_select_index_add", [&] {
                       return at::zeros({torch.num_dst, columns})
                           .index_add_(0, torch.dst, x.index_select(0, torch.src))
                           .mul_(torch.inverse.unsqueeze(1));
                     }});
  Report("forward", name, block, columns, &entries, rounds);
}

void Backward(const char* name, const BlockView& block, const TorchBlock& torch, int64_t columns,
              uint32_t rounds) {
  const at::Tensor grad = at::randn({block.num_dst, columns});
  const at::Tensor x = at::randn({block.num_src, columns}).requires_grad_(true);
  const at::Tensor bag = std::get<0>(
      at::embedding_bag(x, torch.src, torch.indptr.slice(0, 0, torch.num_dst), false, 1));
  Workspace warm;
  std::vector<Entry> entries;
  entries.push_back({"gnnd", [&] {
                       warm.Reset();
                       return BlockOperand<float>(block, Reduction::kMean, &warm)
                           .AggregateTransposed(grad, at::Tensor());
                     }});
  entries.push_back({"sparse_mm_transposed", [&] { return torch.transposed.mm(grad); }});
  entries.push_back({"embedding_bag", [&] {
                       return torch::autograd::grad({bag}, {x}, {grad}, /*retain_graph=*/true)[0];
                     }});
  entries.push_back({"index_select_index_add", [&] {
                       return at::zeros({torch.num_src, columns})
                           .index_add_(
                               0, torch.src,
                               (grad * torch.inverse.unsqueeze(1)).index_select(0, torch.dst));
                     }});
  Report("backward", name, block, columns, &entries, rounds);
}

void Main(uint32_t rounds) {
  at::set_num_threads(1);
  const test::TestGraph graph = SkewedGraph(kGraphNodes, 20, 1);
  const test::TestRecord record(
      graph, {{1, 0, 0}, DistinctNodes(kSeeds, kGraphNodes, 2), {10, 25}, false});
  const Sample sample = record.view();
  for (const uint32_t hop : {1U, 0U}) {
    const BlockView block = sample.block(hop);
    const char* name = hop == 0 ? "top" : "bottom";
    const TorchBlock torch(block);
    for (const int64_t columns : {100, 128, 256}) {
      Forward(name, block, torch, columns, rounds);
      Backward(name, block, torch, columns, rounds);
    }
  }
}

}  // namespace
}  // namespace gnnd::bench

int main(int argc, char** argv) {
  gnnd::bench::Main(argc > 1 ? static_cast<uint32_t>(std::atoi(argv[1])) : 21);
  return 0;
}
