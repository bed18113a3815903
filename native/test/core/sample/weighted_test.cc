#include "core/sample/weighted.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
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

SamplerOptions Weighted(std::vector<int32_t> fanouts, bool replace) {
  SamplerOptions options;
  options.fanouts = std::move(fanouts);
  options.algorithm = Algorithm::kWeighted;
  options.replace = replace;
  return options;
}

TEST_CASE("sampling by weight equals the reference bit for bit") {
  const uint64_t first_seed = test::RandomSeed(5);
  for (uint64_t seed = first_seed; seed < first_seed + 4; ++seed) {
    CAPTURE(seed);
    Graph graph = test::RandomGraph(seed, 500, 100);
    graph.SetWeights(test::RandomWeights(seed, graph));
    const std::vector<std::vector<uint32_t>> batches = {
        test::RandomNodes(seed, 500, 33), {7}, test::RandomNodes(seed + 9, 500, 150)};
    for (const auto& fanouts : std::vector<std::vector<int32_t>>{
             {1}, {5, 3}, {10, 5}, {32, 2}, {33, 2}, {-1, 2}, {3, -1}, {200}}) {
      for (const bool replace : {false, true}) {
        for (const Expansion expansion : {Expansion::kAll, Expansion::kNew}) {
          CAPTURE(fanouts);
          CAPTURE(replace);
          SamplerOptions options = Weighted(fanouts, replace);
          options.expansion = expansion;
          test::CheckEqualsReference(graph.view(), options, batches, seed);
        }
      }
    }
  }
}

TEST_CASE("rows of two-word draws and rows that must be scanned equal the reference") {
  // Row 0 is above the border; rows 1 and 2 have few entries of weight, or one of nearly all.
  constexpr uint32_t kNodes = 4096;
  Graph graph;
  std::vector<uint32_t> row(kTwoWordDegree + 3);
  for (uint32_t i = 0; i < row.size(); ++i) row[i] = (i * 2654435761U) % kNodes;
  graph.AddRow(row);
  row.resize(300);
  graph.AddRow(row);
  graph.AddRow(row);
  for (uint32_t v = 3; v < kNodes; ++v) graph.AddRow({v - 1, v});
  std::vector<float> weights(graph.indices.size(), 1.0F);
  const auto row1 = weights.begin() + static_cast<int64_t>(graph.indptr[1]);
  const auto row2 = weights.begin() + static_cast<int64_t>(graph.indptr[2]);
  std::fill(row1, row1 + 300, 0.0F);
  for (const int at : {3, 40, 299}) row1[at] = static_cast<float>(at);
  row2[17] = 1e9F;
  graph.SetWeights(weights);
  for (const bool replace : {false, true}) {
    test::CheckEqualsReference(graph.view(), Weighted({10, 2}, replace), {{5, 0, 2, 1}, {1}}, 3);
    test::CheckEqualsReference(graph.view(), Weighted({40}, replace), {{2, 1, 0}}, 3);
  }
  SamplerUnderTest sampler(graph.view(), Weighted({10}, false), 2, DetectInstructionSet());
  const BlockView block = sampler.Sample({1, 0, 0}, std::vector<uint32_t>{1, 2}).block(0);
  CHECK(block.indptr[1] == 3);  // all there are of weight above 0
  CHECK(block.indptr[2] == 13);
}

TEST_CASE("a row without weight has no neighbours, however it is drawn") {
  Graph graph;
  for (int v = 0; v < 60; ++v) graph.AddRow(test::RandomNodes(1, 60, 50));
  graph.SetWeights(std::vector<float>(graph.indices.size(), 0.0F));
  for (const bool replace : {false, true}) {
    for (const int32_t fanout : {4, 40, 60, -1}) {
      SamplerUnderTest sampler(graph.view(), Weighted({fanout}, replace), 3,
                               DetectInstructionSet());
      CHECK(sampler.Sample({1, 0, 0}, std::vector<uint32_t>{0, 1, 2}).num_edges() == 0);
    }
  }
}

constexpr uint32_t kRows = 2000;
constexpr uint32_t kBatches = 20;

// kRows rows with the same neighbours kRows .., of these weights; visit(positions) sees each row of
// each batch.
void ForEachRow(const std::vector<float>& row_weights, const SamplerOptions& options,
                const std::function<void(const std::vector<uint32_t>&)>& visit) {
  Graph graph;
  std::vector<uint32_t> row(row_weights.size());
  std::vector<float> weights;
  for (uint32_t j = 0; j < row.size(); ++j) row[j] = kRows + j;
  for (uint32_t v = 0; v < kRows; ++v) {
    graph.AddRow(row);
    weights.insert(weights.end(), row_weights.begin(), row_weights.end());
  }
  for (uint32_t j = 0; j < row.size(); ++j) graph.AddRow({});
  graph.SetWeights(weights);
  std::vector<uint32_t> seeds(kRows);
  for (uint32_t v = 0; v < kRows; ++v) seeds[v] = v;
  SamplerUnderTest sampler(graph.view(), options, kRows, DetectInstructionSet());
  for (uint32_t batch = 0; batch < kBatches; ++batch) {
    const Sample sample = sampler.Sample({23, 1, batch}, seeds);
    const BlockView block = sample.block(0);
    for (uint32_t v = 0; v < block.num_dst; ++v) {
      std::vector<uint32_t> positions;
      for (uint32_t e = block.indptr[v]; e < block.indptr[v + 1]; ++e) {
        positions.push_back(sample.nodes()[block.src[e]] - kRows);
      }
      visit(positions);
    }
  }
}

TEST_CASE("with replacement a neighbour comes as often as its weight says (level 1e-6)") {
  const std::vector<float> weights = {1, 2, 3, 4, 10, 0.5F, 7, 0.1F, 30};
  std::vector<double> times(weights.size(), 0);
  ForEachRow(weights, Weighted({5}, true), [&](const std::vector<uint32_t>& picks) {
    REQUIRE(picks.size() == 5);
    for (const uint32_t pick : picks) times[pick] += 1;
  });
  double sum = 0;
  for (const float weight : weights) sum += weight;
  std::vector<double> expected;
  for (const float weight : weights) expected.push_back(weight / sum * 5 * kRows * kBatches);
  CHECK(test::ChiSquare(times, expected) <
        test::ChiSquareLimit(static_cast<double>(weights.size()) - 1));
}

// Probability of each ordered outcome of successive sampling, by its definition.
void ForEachOutcome(const std::vector<float>& weights, uint32_t fanout,
                    std::vector<uint32_t>* picks, double probability,
                    const std::function<void(const std::vector<uint32_t>&, double)>& visit) {
  if (picks->size() == fanout) return visit(*picks, probability);
  double left = 0;
  for (uint32_t i = 0; i < weights.size(); ++i) {
    if (std::ranges::find(*picks, i) == picks->end()) left += weights[i];
  }
  for (uint32_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0 || std::ranges::find(*picks, i) != picks->end()) continue;
    picks->push_back(i);
    ForEachOutcome(weights, fanout, picks, probability * weights[i] / left, visit);
    picks->pop_back();
  }
}

void CheckSuccessive(const std::vector<float>& weights, uint32_t fanout) {
  std::map<std::vector<uint32_t>, size_t> place;
  std::vector<double> expected;
  std::vector<uint32_t> picks;
  ForEachOutcome(weights, fanout, &picks, 1, [&](const std::vector<uint32_t>& outcome, double p) {
    place[outcome] = expected.size();
    expected.push_back(p * kRows * kBatches);
  });
  std::vector<double> times(expected.size(), 0);
  ForEachRow(weights, Weighted({static_cast<int32_t>(fanout)}, false),
             [&](const std::vector<uint32_t>& outcome) {
               REQUIRE(place.contains(outcome));
               times[place[outcome]] += 1;
             });
  CHECK(test::ChiSquare(times, expected) <
        test::ChiSquareLimit(static_cast<double>(expected.size()) - 1));
}

TEST_CASE("without replacement picks follow one another by weight (chi-square, level 1e-6)") {
  CheckSuccessive({1, 2, 3, 4, 5, 0, 2}, 3);
  CheckSuccessive({1, 1, 1, 1}, 2);
}

TEST_CASE("picks of a scanned row follow the same law (chi-square, level 1e-6)") {
  // The heavy entry takes 15 draws of 15 more than nine times out of ten.
  CheckSuccessive({400, 1, 2, 3}, 2);
}

TEST_CASE("the bits of weighted draws are those frozen in weighted.h") {
  Graph graph = test::RandomGraph(2024, 5000, 80);
  graph.SetWeights(test::RandomWeights(2026, graph));
  const auto seeds = test::RandomNodes(2025, 5000, 40);
  const BatchKey key{0x0123456789ABCDEF, 7, 11};
  SamplerUnderTest distinct(graph.view(), Weighted({15, 10, 5}, false), 40, DetectInstructionSet());
  CHECK(test::ContentHash(distinct.Sample(key, seeds)) == 14085495636855756249U);
  SamplerUnderTest repeating(graph.view(), Weighted({15, 10, 5}, true), 40, DetectInstructionSet());
  CHECK(test::ContentHash(repeating.Sample(key, seeds)) == 2362016007045980514U);
}

}  // namespace
}  // namespace gnnd
