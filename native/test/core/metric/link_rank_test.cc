#include "core/metric/link_rank.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

namespace gnnd {
namespace {

// _eval_mrr of OGB 1.3.6's evaluator of link prediction, on one link: the optimistic rank counts
// negatives above it, the pessimistic one also those that tie.
double RankOfOgb(double link, const std::vector<double>& negatives) {
  const auto above = std::ranges::count_if(negatives, [link](double y) { return y > link; });
  const auto not_below = std::ranges::count_if(negatives, [link](double y) { return y >= link; });
  return 0.5 * (static_cast<double>(above) + static_cast<double>(not_below)) + 1;
}

TEST_CASE("ranks, reciprocals and hits are OGB's, with ties") {
  std::mt19937 random(11);
  std::array<uint64_t, kNumHitRanks> hits{};
  std::array<uint64_t, kNumHitRanks> expected_hits{};
  double reciprocals = 0;
  double expected = 0;
  for (int link = 0; link < 500; ++link) {
    // Whole numbers, so that many tie.
    const auto draw = [&random] { return static_cast<double>(random() % 400); };
    const double score = 280 + draw() / 3;
    std::vector<double> negatives(200);
    for (double& negative : negatives) negative = draw();
    const double rounded = static_cast<double>(static_cast<int>(score));
    LinkRank rank;
    for (const double negative : negatives) {
      rank.greater += negative > rounded ? 1 : 0;
      rank.equal += negative == rounded ? 1 : 0;
    }
    CountRank(rank, hits, &reciprocals);
    const double of_ogb = RankOfOgb(rounded, negatives);
    CHECK(rank.rank() == of_ogb);
    expected += 1 / of_ogb;
    for (size_t k = 0; k < kNumHitRanks; ++k) {
      if (of_ogb <= kHitRanks[k]) ++expected_hits[k];
    }
  }
  CHECK(reciprocals == expected);
  CHECK(hits == expected_hits);
  CHECK(hits[0] < hits[5]);
}

TEST_CASE("each rank up to which links are found has its metric") {
  for (size_t k = 0; k < kNumHitRanks; ++k) {
    const auto name = std::string("HITS_") + std::to_string(kHitRanks[k]);
    CHECK(kMetricNames[static_cast<size_t>(HitsMetric(k))].first == name);
  }
}

}  // namespace
}  // namespace gnnd
