#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "core/feature/favoured.h"
#include "core/sample/locality_hop.h"
#include "core/sample/sampler.h"
#include "test/support/chi_square.h"
#include "test/support/equals_reference.h"
#include "test/support/graphs.h"
#include "test/support/sampling.h"

namespace gnnd {
namespace {

using test::Graph;
using test::SamplerUnderTest;

SamplerOptions Local(std::vector<int32_t> fanouts, EdgeWeights weights) {
  SamplerOptions options;
  options.fanouts = std::move(fanouts);
  options.weights = weights;
  options.locality.max_scale = 8;
  return options;
}

SamplerOptions Base(SamplerOptions options) {
  options.locality = {};
  if (options.weights == EdgeWeights::kShares) options.weights = EdgeWeights::kNone;
  return options;
}

// A graph, and whom it favours in each hop: bits of chance.
struct Case {
  Graph graph;
  std::vector<uint8_t> favoured;

  TopologyView view() const {
    TopologyView view = graph.view();
    view.favoured = favoured;
    return view;
  }
};

Case RandomCase(uint64_t seed, uint32_t nodes, uint32_t max_degree) {
  Case random{test::RandomGraph(seed, nodes, max_degree), std::vector<uint8_t>(nodes)};
  std::mt19937_64 generator(seed);
  for (uint8_t& bits : random.favoured) {
    bits = static_cast<uint8_t>(generator() & generator() & 0xFF);
  }
  return random;
}

TEST_CASE("sampling with favoured neighbours equals the reference bit for bit") {
  const uint64_t first_seed = test::RandomSeed(11);
  for (uint64_t seed = first_seed; seed < first_seed + 3; ++seed) {
    CAPTURE(seed);
    const Case random = RandomCase(seed, 500, 100);
    const std::vector<std::vector<uint32_t>> batches = {
        test::RandomNodes(seed, 500, 33), {7}, test::RandomNodes(seed + 9, 500, 150)};
    for (const auto& fanouts :
         std::vector<std::vector<int32_t>>{{1}, {5, 3}, {10, 5}, {33, 2}, {-1, 2}, {3, -1}, {90}}) {
      for (const uint32_t scale : {17U, 32U, 128U}) {
        for (const EdgeWeights weights : {EdgeWeights::kShares, EdgeWeights::kGcn}) {
          CAPTURE(fanouts);
          CAPTURE(scale);
          SamplerOptions options = Local(fanouts, weights);
          options.expansion = seed % 2 == 0 ? Expansion::kAll : Expansion::kNew;
          test::CheckEqualsReference(random.view(), options, batches, seed, scale);
        }
      }
    }
  }
}

TEST_CASE("rows of two-word draws with favoured neighbours equal the reference") {
  constexpr uint32_t kNodes = 4096;
  Case wide;
  std::vector<uint32_t> row(kTwoWordDegree + 3);
  for (uint32_t i = 0; i < row.size(); ++i) row[i] = (i * 2654435761U) % kNodes;
  wide.graph.AddRow(row);
  for (uint32_t v = 1; v < kNodes; ++v) wide.graph.AddRow({v - 1, v});
  wide.favoured.assign(kNodes, 0);
  for (uint32_t v = 0; v < kNodes; v += 5) wide.favoured[v] = 3;
  test::CheckEqualsReference(wide.view(), Local({10, 2}, EdgeWeights::kShares), {{5, 0, 2}, {1}}, 3,
                             64);
}

TEST_CASE("with a scale of 1 the base sampler's neighbours are drawn, and weights say so") {
  const Case random = RandomCase(3, 800, 60);
  const std::vector<uint32_t> seeds = test::RandomNodes(4, 800, 200);
  for (const EdgeWeights weights : {EdgeWeights::kShares, EdgeWeights::kGcn}) {
    for (const Expansion expansion : {Expansion::kAll, Expansion::kNew}) {
      SamplerOptions options = Local({10, 5, -1}, weights);
      options.expansion = expansion;
      SamplerUnderTest local(random.view(), options, 200, DetectInstructionSet());
      SamplerUnderTest base(random.graph.view(), Base(options), 200, DetectInstructionSet());
      for (uint32_t batch = 0; batch < 3; ++batch) {
        // A batch that favours some before must leave nothing behind.
        local.Sample({1, 0, batch}, seeds, kScaleMost);
        const Sample with = local.Sample({1, 2, batch}, seeds, kScaleOne);
        const Sample without = base.Sample({1, 2, batch}, seeds);
        CHECK(std::ranges::equal(with.nodes(), without.nodes()));
        for (uint32_t hop = 0; hop < 3; ++hop) {
          const BlockView& block = with.block(hop);
          CHECK(std::ranges::equal(block.indptr, without.block(hop).indptr));
          CHECK(std::ranges::equal(block.src, without.block(hop).src));
          if (weights == EdgeWeights::kGcn) {
            CHECK(std::ranges::equal(block.weight, without.block(hop).weight));
            continue;
          }
          for (uint32_t v = 0; v < block.num_dst; ++v) {
            const uint32_t taken = block.indptr[v + 1] - block.indptr[v];
            for (uint32_t e = block.indptr[v]; e < block.indptr[v + 1]; ++e) {
              REQUIRE(block.weight[e] == static_cast<float>(1.0 / taken));
            }
          }
        }
      }
    }
  }
}

constexpr uint32_t kRows = 2000;
constexpr uint32_t kBatches = 20;
constexpr uint32_t kDegree = 24;
constexpr uint32_t kFanout = 7;

// kRows rows with the same neighbours, of which a quarter is favoured in hop 0.
Case SameRows() {
  Case same;
  std::vector<uint32_t> row(kDegree);
  for (uint32_t j = 0; j < kDegree; ++j) row[j] = kRows + j;
  for (uint32_t v = 0; v < kRows; ++v) same.graph.AddRow(row);
  for (uint32_t j = 0; j < kDegree; ++j) same.graph.AddRow({});
  same.favoured.assign(kRows + kDegree, 0);
  for (uint32_t j = 0; j < kDegree; j += 4) same.favoured[kRows + j] = 1;
  return same;
}

template <typename Visit>
void ForEachRow(const Case& same, EdgeWeights weights, uint32_t scale, const Visit& visit) {
  std::vector<uint32_t> seeds(kRows);
  for (uint32_t v = 0; v < kRows; ++v) seeds[v] = v;
  SamplerUnderTest sampler(same.view(), Local({kFanout}, weights), kRows, DetectInstructionSet());
  for (uint32_t batch = 0; batch < kBatches; ++batch) {
    const Sample sample = sampler.Sample({29, 1, batch}, seeds, scale);
    const BlockView& block = sample.block(0);
    for (uint32_t v = 0; v < kRows; ++v) visit(sample, block, v);
  }
}

TEST_CASE("records hold favoured neighbours as often as they should (chi-square, level 1e-6)") {
  const Case same = SameRows();
  for (const uint32_t scale : {16U, 32U, 128U}) {
    CAPTURE(scale);
    std::vector<double> times(kDegree, 0);
    ForEachRow(same, EdgeWeights::kShares, scale,
               [&](const Sample& sample, const BlockView& block, uint32_t v) {
                 REQUIRE(block.indptr[v + 1] - block.indptr[v] == kFanout);
                 for (uint32_t e = block.indptr[v]; e < block.indptr[v + 1]; ++e) {
                   times[sample.nodes()[block.src[e]] - kRows] += 1;
                 }
               });
    const LocalityRow row{kDegree, kDegree / 4, kFanout, scale};
    const double rows = double{kRows} * kBatches;
    double chi_square = 0;
    double free = 0;
    for (uint32_t j = 0; j < kDegree; ++j) {
      const double q = 1 / (j % 4 == 0 ? FavouredWeight(row) : OtherWeight(row));
      if (q == 1) {
        CHECK(times[j] == rows);
        continue;
      }
      const double deviation = (times[j] - rows * q) / std::sqrt(rows * q * (1 - q));
      chi_square += deviation * deviation;
      free += 1;
    }
    CHECK(chi_square < test::ChiSquareLimit(free));
  }
}

TEST_CASE("the mean of aggregates by a record's weights is that of whole rows") {
  const Case same = SameRows();
  const auto value = [](uint32_t node) { return std::sin(node * 12.9898) * 10 + 3; };
  for (const uint32_t scale : {16U, 32U, 128U}) {
    for (const EdgeWeights weights : {EdgeWeights::kShares, EdgeWeights::kGcn}) {
      CAPTURE(scale);
      // In a graph convolution, a neighbour without neighbours has inverse 1.
      const double factor = weights == EdgeWeights::kGcn ? kDegree / std::sqrt(kDegree + 1.0) : 1.0;
      double whole = 0;
      for (uint32_t j = 0; j < kDegree; ++j) whole += factor * value(kRows + j) / kDegree;
      double sum = 0;
      double squares = 0;
      ForEachRow(same, weights, scale,
                 [&](const Sample& sample, const BlockView& block, uint32_t v) {
                   double aggregate = 0;
                   for (uint32_t e = block.indptr[v]; e < block.indptr[v + 1]; ++e) {
                     aggregate += double{block.weight[e]} * value(sample.nodes()[block.src[e]]);
                   }
                   sum += aggregate;
                   squares += aggregate * aggregate;
                 });
      const double rows = double{kRows} * kBatches;
      const double mean = sum / rows;
      const double error = std::sqrt((squares / rows - mean * mean) / rows);
      CHECK(std::abs(mean - whole) < 4 * error + 1e-6);
    }
  }
}

TEST_CASE("more of a batch's rows are held, the larger the scale") {
  const Graph graph = test::RandomGraph(8, 3000, 80);
  std::vector<uint32_t> held = test::RandomNodes(9, 3000, 300);
  const std::vector<uint8_t> favoured = FavouredHops(graph.view(), held, 2, 200);
  TopologyView view = graph.view();
  view.favoured = favoured;
  std::sort(held.begin(), held.end());
  SamplerUnderTest sampler(view, Local({8, 8}, EdgeWeights::kShares), 100, DetectInstructionSet());
  double before = 0;
  for (const uint32_t scale : {16U, 32U, 64U, 128U}) {
    double hits = 0;
    double all = 0;
    for (uint32_t batch = 0; batch < 30; ++batch) {
      const Sample sample =
          sampler.Sample({5, 0, batch}, test::RandomNodes(batch, 3000, 100), scale);
      for (const uint32_t node : sample.nodes()) {
        hits += std::binary_search(held.begin(), held.end(), node) ? 1 : 0;
      }
      all += static_cast<double>(sample.nodes().size());
    }
    CHECK(hits / all > before);
    before = hits / all;
  }
}

}  // namespace
}  // namespace gnnd
