#include "core/metric/pool_hits.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <random>
#include <utility>
#include <vector>

namespace gnnd {
namespace {

struct Scores {
  std::vector<float> links;
  std::vector<float> pool;
};

// As `_eval_hits` of ogb.linkproppred.Evaluator (1.3.6) has it: 1 if there are fewer than K
// negatives; else the share of links above the least of the K best of them.
double OgbHits(const Scores& scores, uint32_t k) {
  if (scores.pool.size() < k) return 1;
  std::vector<float> best = scores.pool;
  std::ranges::sort(best, std::greater());
  const float bar = best[k - 1];
  const auto above = std::ranges::count_if(scores.links, [bar](float one) { return one > bar; });
  return static_cast<double>(above) / static_cast<double>(scores.links.size());
}

// A table with the scores in a random order, and some of which nothing is known between them.
std::vector<double> HitsOf(const Scores& scores, uint64_t seed) {
  std::vector<std::pair<float, Outcome>> entries;
  for (const float score : scores.links) entries.emplace_back(score, Outcome::kPositive);
  for (const float score : scores.pool) entries.emplace_back(score, Outcome::kNegative);
  for (int i = 0; i < 20; ++i) entries.emplace_back(100.0F, Outcome::kUnknown);
  std::mt19937_64 random(seed);
  std::ranges::shuffle(entries, random);
  std::vector<float> values;
  std::vector<Outcome> outcomes;
  for (const auto& [score, outcome] : entries) {
    values.push_back(score);
    outcomes.push_back(outcome);
  }
  std::vector<double> shares;
  for (const uint64_t hits : PoolHits({{}, values, outcomes})) {
    shares.push_back(static_cast<double>(hits) / static_cast<double>(scores.links.size()));
  }
  return shares;
}

TEST_CASE("links are found in a pool as OGB's evaluator finds them") {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  for (const size_t pool : {0, 1, 5, 19, 20, 49, 50, 51, 99, 100, 101, 3000}) {
    for (const float grid : {0.0F, 0.5F}) {  // with a grid many scores tie
      CAPTURE(pool);
      CAPTURE(grid);
      const auto score = [&](float shift) {
        const float drawn = normal(random) + shift;
        return grid > 0 ? std::round(drawn / grid) * grid : drawn;
      };
      Scores scores;
      for (int i = 0; i < 700; ++i) scores.links.push_back(score(1.5F));
      for (size_t i = 0; i < pool; ++i) scores.pool.push_back(score(0));
      std::vector<double> expected;
      for (const uint32_t k : kHitRanks) expected.push_back(OgbHits(scores, k));
      CHECK(HitsOf(scores, pool) == expected);
    }
  }
}

TEST_CASE("a link that ties with the K-th best of a pool is not found at K") {
  const Scores scores{{3, 2, 1}, {2, 2, 0}};
  const std::vector<double> shares = HitsOf(scores, 3);
  CHECK(shares[0] == 1.0 / 3);  // above the best
  CHECK(shares[1] == 1);        // above the third
  CHECK(shares[2] == 1);        // there are no ten
}

}  // namespace
}  // namespace gnnd
