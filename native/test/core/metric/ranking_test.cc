#include "core/metric/ranking.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

namespace gnnd {
namespace {

using doctest::Approx;

constexpr Outcome kNo = Outcome::kNegative;
constexpr Outcome kYes = Outcome::kPositive;
constexpr Outcome kUnknown = Outcome::kUnknown;

Ranking Ranked(const std::vector<float>& scores, const std::vector<Outcome>& outcomes) {
  return Ranker().Rank(scores.data(), outcomes.data(), scores.size(), 1);
}

// By the definitions: pair by pair, and at each positive the precision of all that are no lower.
Ranking ByDefinition(const std::vector<float>& scores, const std::vector<Outcome>& outcomes) {
  double above = 0;
  double pairs = 0;
  double precisions = 0;
  double positives = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (outcomes[i] != kYes) continue;
    ++positives;
    double found = 0;
    double right = 0;
    for (size_t j = 0; j < scores.size(); ++j) {
      if (outcomes[j] == kUnknown) continue;
      if (scores[j] >= scores[i]) {
        ++found;
        right += outcomes[j] == kYes ? 1 : 0;
      }
      if (outcomes[j] == kYes) continue;
      ++pairs;
      above += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
    }
    precisions += right / found;
  }
  return {above / pairs, precisions / positives};
}

}  // namespace

// The examples of the documentation of scikit-learn 1.5's roc_auc_score and
// average_precision_score.
TEST_CASE("areas under curves are scikit-learn's") {
  const Ranking example = Ranked({0.1F, 0.4F, 0.35F, 0.8F}, {kNo, kNo, kYes, kYes});
  CHECK(example.roc_auc == 0.75);
  CHECK(example.average_precision == Approx(0.8333333333333333));
  const Ranking ties = Ranked({0.5F, 0.5F, 0.5F, 0.5F}, {kNo, kYes, kNo, kYes});
  CHECK(ties.roc_auc == 0.5);
  CHECK(ties.average_precision == 0.5);
}

TEST_CASE("signs, zeros, infinities and what is not known have their places") {
  const float infinity = std::numeric_limits<float>::infinity();
  const Ranking all =
      Ranked({-infinity, -2, -1, 0, 1, 2, infinity}, {kNo, kNo, kNo, kYes, kYes, kYes, kYes});
  CHECK(all.roc_auc == 1);
  CHECK(all.average_precision == 1);
  CHECK(Ranked({-0.0F, 0.0F}, {kYes, kNo}).roc_auc == 0.5);
  CHECK(Ranked({9, 1, 2}, {kUnknown, kNo, kYes}).roc_auc == 1);
  CHECK(std::isnan(Ranked({1, 2, 3}, {kUnknown, kYes, kYes}).roc_auc));
  CHECK(std::isnan(Ranked({1, 2}, {kNo, kNo}).average_precision));
  CHECK(std::isnan(Ranked({1, std::nanf(""), 3}, {kNo, kYes, kYes}).roc_auc));
  CHECK(std::isnan(Ranked({}, {}).roc_auc));
}

TEST_CASE("ranks follow the definitions, whatever is drawn") {
  std::mt19937 random(11);
  for (uint32_t trial = 0; trial < 60; ++trial) {
    CAPTURE(trial);
    const size_t count = 2 + random() % 300;
    const uint32_t distinct = trial % 3 == 0 ? 5 : 1U << 20;
    std::vector<float> scores(count);
    std::vector<Outcome> outcomes(count);
    for (size_t i = 0; i < count; ++i) {
      scores[i] = static_cast<float>(random() % distinct) * 0.37F - 1.0F;
      outcomes[i] = random() % 7 == 0 ? kUnknown : random() % 4 == 0 ? kYes : kNo;
    }
    outcomes[0] = kYes;
    outcomes[1] = kNo;
    const Ranking ranked = Ranked(scores, outcomes);
    const Ranking expected = ByDefinition(scores, outcomes);
    CHECK(ranked.roc_auc == Approx(expected.roc_auc).epsilon(1e-12));
    CHECK(ranked.average_precision == Approx(expected.average_precision).epsilon(1e-12));
  }
}

TEST_CASE("a column of many is ranked by its own entries") {
  const std::vector<float> scores = {1, 9, 2, 8, 3, 7};  // two columns
  const std::vector<Outcome> outcomes = {kNo, kNo, kYes, kYes, kYes, kYes};
  Ranker ranker;
  CHECK(ranker.Rank(scores.data(), outcomes.data(), 3, 2).roc_auc == 1);
  CHECK(ranker.Rank(scores.data() + 1, outcomes.data() + 1, 3, 2).roc_auc == 0);
}

TEST_CASE("a table lies in as many bytes as its columns and entries take, and is ranked in parts") {
  constexpr uint64_t kNodes = 3;
  constexpr uint64_t kColumns = 2;
  std::vector<std::byte> bytes(kColumns *
                               (ScoreTable::kColumnBytes + kNodes * ScoreTable::kEntryBytes));
  const ScoreTable table = ScoreTable::In(bytes, kColumns);
  REQUIRE(table.scores.size() == kNodes * kColumns);
  const auto* const end = reinterpret_cast<const std::byte*>(table.outcomes.data() + 6);
  CHECK(end == bytes.data() + bytes.size());
  std::ranges::copy(std::vector<float>{1, 9, 2, 8, 3, 7}, table.scores.begin());
  std::ranges::copy(std::vector<Outcome>{kNo, kNo, kYes, kYes, kYes, kYes}, table.outcomes.begin());
  const auto alive = [] { return true; };
  CHECK(RankColumns(table, kNodes, 0, 1, [] { return false; }).code() == Code::kAborted);
  REQUIRE(RankColumns(table, kNodes, 1, 2, alive).ok());
  CHECK(table.rankings[0].roc_auc == 0);
  CHECK(table.rankings[1].average_precision > 0);
  REQUIRE(RankColumns(table, kNodes, 0, 2, alive).ok());
  CHECK(table.rankings[0].roc_auc == 1);
  CHECK(table.rankings[1].roc_auc == 0);
}

TEST_CASE("means are over columns that have both sorts") {
  const std::vector<Ranking> columns = {{0.5, 0.25}, kUnranked, {1, 0.75}};
  CHECK(MeanOf(columns).roc_auc == 0.75);
  CHECK(MeanOf(columns).average_precision == 0.5);
  CHECK(std::isnan(MeanOf(std::vector<Ranking>{kUnranked}).roc_auc));
}

}  // namespace gnnd
