#include "core/sample/walk.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
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

SamplerOptions Walks(std::vector<int32_t> fanouts, const WalkOptions& walk) {
  SamplerOptions options;
  options.fanouts = std::move(fanouts);
  options.algorithm = Algorithm::kWalk;
  options.weights = EdgeWeights::kVisits;
  options.walk = walk;
  return options;
}

TEST_CASE("random walks equal the reference bit for bit") {
  const uint64_t first_seed = test::RandomSeed(5);
  for (uint64_t seed = first_seed; seed < first_seed + 4; ++seed) {
    CAPTURE(seed);
    const Graph graph = test::RandomGraph(seed, 300, seed % 2 == 0 ? 6 : 40);
    const std::vector<std::vector<uint32_t>> batches = {
        test::RandomNodes(seed, 300, 33), {7}, test::RandomNodes(seed + 9, 300, 200)};
    for (const WalkOptions& walk :
         {WalkOptions{4, 3, 0.5}, WalkOptions{1, 1, 0}, WalkOptions{8, 3, 0.25},
          WalkOptions{64, 2, 0.999}, WalkOptions{30, 40, 0.05}, WalkOptions{3, 64, 0}}) {
      CAPTURE(walk.walks);
      CAPTURE(walk.length);
      for (const Expansion expansion : {Expansion::kAll, Expansion::kNew}) {
        SamplerOptions options = Walks({5, 5, 5}, walk);
        options.expansion = expansion;
        test::CheckEqualsReference(graph.view(), options, batches, seed);
        options.fanouts = {4096};
        test::CheckEqualsReference(graph.view(), options, batches, seed);
      }
    }
  }
}

TEST_CASE("neighbours of a walk are distinct, the most visited first") {
  const Graph graph = test::RandomGraph(8, 40, 5);
  SamplerUnderTest sampler(graph.view(), Walks({6}, {40, 6, 0.2}), 40, DetectInstructionSet());
  const BlockView block = sampler.Sample({3, 0, 0}, test::RandomNodes(1, 40, 40)).block(0);
  for (uint32_t row = 0; row < block.num_dst; ++row) {
    std::map<uint32_t, int> times;
    for (uint32_t e = block.indptr[row]; e < block.indptr[row + 1]; ++e) {
      CHECK(++times[block.src[e]] == 1);
      if (e > block.indptr[row]) CHECK(block.weight[e] <= block.weight[e - 1]);
      CHECK(block.weight[e] >= 1);
    }
    CHECK(times.size() <= 6);
  }
}

TEST_CASE("a walk stops at a node without in-neighbours") {
  Graph graph;  // 0 <- 1 <- 2, nothing leads to 2
  graph.AddRow({1});
  graph.AddRow({2});
  graph.AddRow({});
  SamplerUnderTest sampler(graph.view(), Walks({5}, {7, 9, 0}), 3, DetectInstructionSet());
  const Sample sample = sampler.Sample({3, 0, 0}, std::vector<uint32_t>{0, 1, 2});
  const BlockView block = sample.block(0);
  CHECK(block.indptr[1] == 2);
  CHECK(block.indptr[2] == 3);
  CHECK(block.indptr[3] == 3);
  for (const float weight : block.weight) CHECK(weight == 7);
}

TEST_CASE("visits come as often as the walk's exact probabilities say (chi-square, level 1e-6)") {
  // Row lists in-neighbours: a self-loop, a repeated neighbour, a dead end (3).
  const std::vector<std::vector<uint32_t>> rows = {{1, 2, 2}, {0, 1, 3}, {0, 3, 1, 4}, {}, {2}};
  Graph graph;
  for (const auto& row : rows) graph.AddRow(row);
  constexpr double kRestart = 0.3;
  constexpr uint32_t kLength = 5;
  constexpr uint32_t kBatches = 40'000;
  // Expected visits to each node by one walk from node 0.
  std::vector<double> at = {1, 0, 0, 0, 0};
  std::vector<double> visits(5, 0);
  std::vector<double> first(5, 0);  // after step 0 alone
  for (uint32_t step = 0; step < kLength; ++step) {
    std::vector<double> next(5, 0);
    for (size_t v = 0; v < 5; ++v) {
      for (const uint32_t u : rows[v]) next[u] += at[v] / static_cast<double>(rows[v].size());
    }
    for (size_t v = 0; v < 5; ++v) {
      visits[v] += next[v];
      if (step == 0) first[v] = next[v];
      at[v] = next[v] * (1 - kRestart);
    }
  }
  SamplerUnderTest sampler(graph.view(), Walks({5}, {1, kLength, kRestart}), 1,
                           DetectInstructionSet());
  std::vector<double> seen(5, 0);
  std::vector<double> squares(5, 0);
  for (uint32_t batch = 0; batch < kBatches; ++batch) {
    const Sample sample = sampler.Sample({31, 2, batch}, std::vector<uint32_t>{0});
    const BlockView block = sample.block(0);
    for (uint32_t e = 0; e < block.src.size(); ++e) {
      const double weight = block.weight[e];
      seen[sample.nodes()[block.src[e]]] += weight;
      squares[sample.nodes()[block.src[e]]] += weight * weight;
    }
  }
  // Each mean is compared with its exact value, by its own variance: a normal quantile, level 1e-6.
  for (size_t v = 0; v < 5; ++v) {
    CAPTURE(v);
    const double mean = seen[v] / kBatches;
    const double variance = squares[v] / kBatches - mean * mean;
    CHECK(std::abs(mean - visits[v]) < 4.9 * std::sqrt(variance / kBatches));
  }
  // Walks of one step: independent draws, an exact chi-square.
  SamplerUnderTest single(graph.view(), Walks({5}, {1, 1, 0}), 1, DetectInstructionSet());
  std::vector<double> times(2, 0);
  for (uint32_t batch = 0; batch < kBatches; ++batch) {
    const Sample sample = single.Sample({32, 2, batch}, std::vector<uint32_t>{0});
    times[sample.nodes()[sample.block(0).src[0]] - 1] += 1;
  }
  CHECK(test::ChiSquare(times, {first[1] * kBatches, first[2] * kBatches}) < 26);  // 24 at 1 degree
}

TEST_CASE("counting by pairs and by sorting find the same") {
  for (uint32_t size : {0U, 1U, 12U, 64U, 65U, 500U, 4096U}) {
    VisitCounter counter(4096);
    std::vector<uint32_t> visits = test::RandomNodes(size, 5000, size);
    for (uint32_t& visit : visits) visit = visit % 7 == 0 ? kNoVisit : visit % 23;
    std::vector<uint32_t> nodes(23);
    std::vector<float> counts(23);
    const uint32_t found = counter.Top(visits.data(), size, 23, nodes.data(), counts.data());
    std::map<uint32_t, float> expected;
    for (const uint32_t visit : visits) {
      if (visit != kNoVisit) expected[visit] += 1;
    }
    REQUIRE(found == expected.size());
    for (uint32_t i = 0; i < found; ++i) CHECK(counts[i] == expected[nodes[i]]);
  }
}

TEST_CASE("the bits of random walks are those frozen in walk.h") {
  const Graph graph = test::RandomGraph(2024, 5000, 80);
  const auto seeds = test::RandomNodes(2025, 5000, 40);
  SamplerUnderTest sampler(graph.view(), Walks({5, 5, 5}, {4, 3, 0.5}), 40, DetectInstructionSet());
  CHECK(test::ContentHash(sampler.Sample({0x0123456789ABCDEF, 7, 11}, seeds)) ==
        13464941433938860070U);
}

}  // namespace
}  // namespace gnnd
