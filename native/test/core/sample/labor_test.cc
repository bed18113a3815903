#include "core/sample/labor.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <vector>

#include "core/sample/sampler.h"
#include "test/support/chi_square.h"
#include "test/support/equals_reference.h"
#include "test/support/graphs.h"
#include "test/support/sampling.h"

namespace gnnd {
namespace {

using test::Graph;
using test::SamplerUnderTest;

SamplerOptions Labor(std::vector<int32_t> fanouts, uint32_t window = 1) {
  SamplerOptions options;
  options.fanouts = std::move(fanouts);
  options.algorithm = Algorithm::kLabor;
  options.weights = EdgeWeights::kInverse;
  options.labor.dependency_window = window;
  return options;
}

TEST_CASE("LABOR equals the reference bit for bit") {
  const uint64_t first_seed = test::RandomSeed(5);
  for (uint64_t seed = first_seed; seed < first_seed + 4; ++seed) {
    CAPTURE(seed);
    const Graph graph = test::RandomGraph(seed, 700, 300);
    const std::vector<std::vector<uint32_t>> batches = {
        test::RandomNodes(seed, 700, 33), {7}, test::RandomNodes(seed + 9, 700, 300)};
    for (const auto& fanouts : std::vector<std::vector<int32_t>>{
             {1, 2, 3}, {5, 3}, {10, 10}, {-1, 2}, {3, -1}, {200}, {4096}}) {
      for (const Expansion expansion : {Expansion::kAll, Expansion::kNew}) {
        for (const uint32_t window : {1U, 2U, 7U}) {
          CAPTURE(fanouts);
          SamplerOptions options = Labor(fanouts, window);
          options.expansion = expansion;
          test::CheckEqualsReference(graph.view(), options, batches, seed);
        }
      }
    }
  }
}

TEST_CASE("a row that LABOR would take beyond its bound ends there") {
  // One neighbour, listed a thousand times: it is taken a thousand times or not at all.
  Graph graph;
  graph.AddRow(std::vector<uint32_t>(1000, 1));
  graph.AddRow({});
  bool taken = false;
  SamplerUnderTest sampler(graph.view(), Labor({10}), 1, DetectInstructionSet());
  for (uint32_t batch = 0; batch < 2000; ++batch) {
    const uint64_t edges = sampler.Sample({1, 0, batch}, std::vector<uint32_t>{0}).num_edges();
    CHECK((edges == 0 || edges == MaxLaborRow(10)));
    taken |= edges > 0;
  }
  CHECK(taken);
  test::CheckEqualsReference(graph.view(), Labor({500}), {{0, 1}}, 4);
}

TEST_CASE("all rows of a hop agree on a neighbour; hops and batches do not") {
  Graph graph;
  std::vector<uint32_t> row(1000);
  for (uint32_t j = 0; j < row.size(); ++j) row[j] = j + 2;
  graph.AddRow(row);
  graph.AddRow(row);
  for (uint32_t j = 0; j < row.size(); ++j) graph.AddRow(row);
  const auto taken = [&](uint32_t batch, uint32_t window, uint32_t hop, uint32_t at) {
    SamplerUnderTest sampler(graph.view(), Labor({50, 50}, window), 2, DetectInstructionSet());
    const Sample sample = sampler.Sample({9, 0, batch}, std::vector<uint32_t>{0, 1});
    const BlockView block = sample.block(hop);
    std::set<uint32_t> nodes;
    for (uint32_t e = block.indptr[at]; e < block.indptr[at + 1]; ++e) {
      nodes.insert(sample.nodes()[block.src[e]]);
    }
    return nodes;
  };
  CHECK(taken(0, 1, 0, 0) == taken(0, 1, 0, 1));
  CHECK(taken(0, 1, 0, 0) != taken(0, 1, 1, 0));
  CHECK(taken(0, 1, 0, 0) != taken(1, 1, 0, 0));
  // The same holds within a window, and while numbers change.
  CHECK(taken(3, 4, 0, 0) == taken(3, 4, 0, 1));
  CHECK(taken(3, 4, 0, 0) != taken(2, 4, 0, 0));
}

TEST_CASE("numbers move gradually: a node keeps its own for a window, and nodes change in turn") {
  constexpr uint32_t kNodes = 64'000;
  constexpr uint32_t kBatches = 40;
  for (const uint32_t window : {1U, 2U, 8U, 13U}) {
    CAPTURE(window);
    std::vector<uint32_t> numbers(kNodes);
    std::vector<uint32_t> since(kNodes, 0);  // the batch at which the number was new
    for (uint32_t batch = 0; batch < kBatches; ++batch) {
      const LaborKeys keys = LaborKeysOf({17, 3, batch}, 1, window);
      uint32_t changed = 0;
      bool lasted = true;  // every number that changes had been there for a window
      for (uint32_t node = 0; node < kNodes; ++node) {
        const uint32_t number = LaborNumber(keys, node);
        if (batch > 0 && number != numbers[node]) {
          ++changed;
          // The first ones are older than the job.
          lasted &= since[node] == 0 || batch - since[node] == window;
          since[node] = batch;
        }
        numbers[node] = number;
      }
      CHECK(lasted);
      const double share = static_cast<double>(changed) / kNodes;
      if (batch > 0) CHECK(share == doctest::Approx(1.0 / window).epsilon(0.01));
    }
  }
}

TEST_CASE("adjacent batches share the more neighbours the wider the window, without a jump") {
  constexpr uint32_t kWindow = 8;
  Graph graph;
  std::vector<uint32_t> row(20'000);
  for (uint32_t j = 0; j < row.size(); ++j) row[j] = j + 1;
  graph.AddRow(row);
  for (uint32_t j = 0; j < row.size(); ++j) graph.AddRow({});
  SamplerUnderTest sampler(graph.view(), Labor({2000}, kWindow), 1, DetectInstructionSet());
  std::vector<std::set<uint32_t>> taken;
  for (uint32_t batch = 0; batch < 3 * kWindow; ++batch) {
    const Sample sample = sampler.Sample({9, 0, batch}, std::vector<uint32_t>{0});
    const auto nodes = sample.nodes().subspan(1);
    taken.emplace_back(nodes.begin(), nodes.end());
  }
  const auto shared = [&](size_t a, size_t b) {
    size_t common = 0;
    for (const uint32_t node : taken[a]) common += taken[b].count(node);
    return static_cast<double>(common) / static_cast<double>(taken[a].size());
  };
  // A tenth of all nodes is taken, also of those whose number has changed.
  for (uint32_t batch = 0; batch + kWindow < taken.size(); ++batch) {
    for (const uint32_t apart : {1U, 3U, kWindow}) {
      const double kept = 1.0 - static_cast<double>(apart) / kWindow;
      CHECK(shared(batch, batch + apart) == doctest::Approx(kept + (1 - kept) * 0.1).epsilon(0.1));
    }
  }
}

TEST_CASE("LABOR finds fewer nodes than uniform sampling for as many edges") {
  const Graph graph = test::RandomGraph(3, 3000, 400);
  const auto seeds = test::RandomNodes(4, 3000, 500);
  SamplerUnderTest labor(graph.view(), Labor({10}), 500, DetectInstructionSet());
  SamplerUnderTest uniform(graph.view(), {{10}}, 500, DetectInstructionSet());
  const Sample ours = labor.Sample({1, 0, 0}, seeds);
  const Sample theirs = uniform.Sample({1, 0, 0}, seeds);
  CHECK(static_cast<double>(ours.num_edges()) ==
        doctest::Approx(static_cast<double>(theirs.num_edges())).epsilon(0.15));
  CHECK(static_cast<double>(ours.nodes().size()) <
        0.75 * static_cast<double>(theirs.nodes().size()));
}

TEST_CASE("a neighbour is taken with probability f / d (chi-square, level 1e-6)") {
  constexpr uint32_t kDegree = 60;
  constexpr uint32_t kBatches = 40'000;
  Graph graph;
  std::vector<uint32_t> row(kDegree);
  for (uint32_t j = 0; j < kDegree; ++j) row[j] = j + 1;
  graph.AddRow(row);
  for (uint32_t j = 0; j < kDegree; ++j) graph.AddRow({});
  // One batch per window is looked at, in the middle of its change: windows are independent.
  for (const uint32_t window : {1U, 6U}) {
    CAPTURE(window);
    SamplerUnderTest sampler(graph.view(), Labor({12}, window), 1, DetectInstructionSet());
    std::vector<double> times(kDegree, 0);
    for (uint32_t i = 0; i < kBatches; ++i) {
      const uint32_t batch = i * window + window / 2;
      const Sample sample = sampler.Sample({77, 3, batch}, std::vector<uint32_t>{0});
      for (const uint32_t node : sample.nodes().subspan(1)) times[node - 1] += 1;
      for (const float weight : sample.block(0).weight) REQUIRE(weight == 5.0F);
    }
    // Independent trials: each count has variance n p (1 - p).
    constexpr double kShare = 0.2;
    const double chi_square =
        test::ChiSquare(times, std::vector<double>(kDegree, kBatches * kShare)) / (1 - kShare);
    CHECK(chi_square < test::ChiSquareLimit(kDegree));
    // A statistic that is too small would mean numbers that are too even, which is as wrong.
    CHECK(chi_square > 2 * kDegree - test::ChiSquareLimit(kDegree));
  }
}

TEST_CASE("numbers of consecutive nodes fill 256 cells evenly (chi-square, level 1e-6)") {
  constexpr uint32_t kCells = 256;
  constexpr uint32_t kNodes = 1'000'000;
  for (uint32_t batch = 0; batch < 8; ++batch) {
    const LaborKeys key = LaborKeysOf({5, 0, batch}, 0, batch < 4 ? 1 : 16);
    std::vector<double> high(kCells, 0);
    std::vector<double> low(kCells, 0);
    for (uint32_t node = 0; node < kNodes; ++node) {
      high[LaborNumber(key, node) >> 24] += 1;
      low[LaborNumber(key, node) & 0xFF] += 1;
    }
    const std::vector<double> expected(kCells, static_cast<double>(kNodes) / kCells);
    CHECK(test::ChiSquare(high, expected) < test::ChiSquareLimit(kCells - 1));
    CHECK(test::ChiSquare(low, expected) < test::ChiSquareLimit(kCells - 1));
  }
}

TEST_CASE("the bits of LABOR are those frozen in labor.h") {
  const Graph graph = test::RandomGraph(2024, 5000, 80);
  const auto seeds = test::RandomNodes(2025, 5000, 40);
  SamplerUnderTest sampler(graph.view(), Labor({15, 10, 5}, 3), 40, DetectInstructionSet());
  // The first batch of a window, and one whose nodes have changed their numbers in part.
  CHECK(test::ContentHash(sampler.Sample({0x0123456789ABCDEF, 7, 9}, seeds)) ==
        2014397346037916305U);
  CHECK(test::ContentHash(sampler.Sample({0x0123456789ABCDEF, 7, 11}, seeds)) ==
        12703979617327159858U);
}

}  // namespace
}  // namespace gnnd
