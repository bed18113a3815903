#include "core/feature/hotness.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "core/feature/footprint.h"
#include "core/feature/hot_order.h"
#include "test/support/graphs.h"

namespace gnnd {
namespace {

// Row 0 lists 1 and 2; row 1 lists 2, 3, 4, 5; row 2 lists nothing; row 3 lists 0.
test::Graph HandMade() {
  test::Graph graph;
  graph.AddRow({1, 2});
  graph.AddRow({2, 3, 4, 5});
  graph.AddRow({});
  graph.AddRow({0});
  graph.AddRow({});
  graph.AddRow({});
  return graph;
}

TEST_CASE("degree hotness counts how often rows list a node") {
  CHECK(DegreeHotness(HandMade().view()) == Hotness{1, 1, 2, 1, 1, 1});
}

TEST_CASE("random hotness depends on the random seed and the node alone") {
  const Hotness a = RandomHotness(1, 500);
  CHECK(a == RandomHotness(1, 500));
  CHECK(a != RandomHotness(2, 500));
  const Hotness longer = RandomHotness(1, 600);
  CHECK(std::equal(a.begin(), a.end(), longer.begin()));
  const double mean = std::accumulate(a.begin(), a.end(), 0.0) / 500;
  CHECK(mean == doctest::Approx(0.5).epsilon(0.1));
}

TEST_CASE("probability hotness of one hop is the expected number of batches, by hand") {
  // Training nodes 0 and 1 in two batches of one: each is a seed of one batch in two.
  const Hotness hotness =
      ProbabilityHotness(HandMade().view(), std::vector<uint32_t>{0, 1}, {{.fanouts = {2}}, 1});
  // Node 2: 0 always draws it, 1 draws it with probability 2 / 4.
  CHECK(hotness[2] == doctest::Approx(2 * (1 - (1 - 0.5) * (1 - 0.25))));
  // Node 1: a seed itself, and drawn by 0.
  CHECK(hotness[1] == doctest::Approx(2 * (1 - 0.5 * 0.5)));
  CHECK(hotness[0] == doctest::Approx(1));
  CHECK(hotness[3] == doctest::Approx(2 * 0.25));
}

TEST_CASE("probability hotness goes on through the hops, every node so far expanded") {
  const Hotness hotness =
      ProbabilityHotness(HandMade().view(), std::vector<uint32_t>{3}, {{.fanouts = {-1, 1, 2}}, 8});
  // One batch: 3, then 0, then one of 1 and 2, then both with what 1 leads to.
  CHECK(hotness[3] == doctest::Approx(1));
  CHECK(hotness[0] == doctest::Approx(1));
  CHECK(hotness[1] == doctest::Approx(1));
  CHECK(hotness[4] == doctest::Approx(0.5 * 0.5));
}

TEST_CASE("presampled hotness is the mean over the epochs") {
  CHECK(PresampledHotness(std::vector<uint32_t>{3, 0, 8}, 2) == Hotness{1.5, 0, 4});
}

TEST_CASE("combined hotness lies between counts and estimate, and breaks ties of counts") {
  const std::vector<uint32_t> counts{2, 1, 1, 0};
  const Hotness estimate{1, 1, 3, 2};
  const Hotness hotness = CombinedHotness(counts, 1, estimate, 1);
  CHECK(hotness == Hotness{1.5, 1, 2, 1});
  const Hotness sharp = CombinedHotness(counts, 1, estimate, 0.01F);
  CHECK(OrderByHotness(sharp) == std::vector<uint32_t>{0, 2, 1, 3});
}

TEST_CASE("the order is by falling hotness, ties by rising id") {
  CHECK(OrderByHotness(Hotness{0, 2, 2, 5, 0, -0.0F}) == std::vector<uint32_t>{3, 1, 2, 0, 4, 5});
}

TEST_CASE("the order is that of a stable sort, for values of all magnitudes") {
  std::mt19937_64 random(5);
  std::vector<float> hotness = {0.0F, -0.0F, 1e-45F, 3.4e38F, 1.0F, 1.0F};
  for (uint32_t i = 0; i < 20'000; ++i) {
    hotness.push_back(
        std::ldexp(static_cast<float>(random() % 64), static_cast<int>(random() % 60) - 30));
  }
  std::vector<uint32_t> expected(hotness.size());
  std::iota(expected.begin(), expected.end(), 0U);
  std::stable_sort(expected.begin(), expected.end(),
                   [&](uint32_t a, uint32_t b) { return hotness[a] > hotness[b]; });
  CHECK(OrderByHotness(hotness) == expected);
}

TEST_CASE("a cache holds exactly floor(alpha V) rows") {
  CHECK(CacheRows(0, 7) == 0);
  CHECK(CacheRows(0.1, 19) == 1);
  CHECK(CacheRows(0.5, 7) == 3);
  CHECK(CacheRows(1, 7) == 7);
}

TEST_CASE("similarity is that of the hottest tenths, and not symmetric") {
  // 20 nodes: the tenth is two nodes.
  std::vector<uint32_t> i(20);
  std::vector<uint32_t> j(20);
  i[0] = 9, i[1] = 4, i[2] = 3;
  j[0] = 5, j[2] = 8, j[1] = 1;
  // T_i = {0, 1}, T_j = {2, 0}: they share node 0, min(9, 5) = 5.
  CHECK(Similarity(i, j) == doctest::Approx(5.0 / 13));
  CHECK(Similarity(j, i) == doctest::Approx(5.0 / 13));
  j[0] = 10;
  CHECK(Similarity(i, j) == doctest::Approx(9.0 / 18));
  CHECK(Similarity(j, i) == doctest::Approx(9.0 / 13));
  CHECK(Similarity(i, i) == 1.0);
  CHECK(Similarity(i, std::vector<uint32_t>(20)) == 0.0);
}

TEST_CASE("hits are the footprint's rows that the cache holds") {
  const std::vector<uint32_t> footprint{4, 0, 3, 2};
  const std::vector<uint32_t> order{2, 0, 3, 1};
  CHECK(HitsOf(footprint, order, 0) == 0);
  CHECK(HitsOf(footprint, order, 2) == 7);
  CHECK(HitsOf(footprint, order, 4) == 9);
}

}  // namespace
}  // namespace gnnd
