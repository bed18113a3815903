#include "core/draw/locality.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "test/support/chi_square.h"

namespace gnnd {
namespace {

constexpr uint32_t kTimes = 40'000;

struct Case {
  uint32_t degree;
  uint32_t fanout;
  std::vector<uint32_t> favoured;
  uint32_t scale;
};

LocalityRow RowOf(const Case& c) { return {c.degree, c.favoured.size(), c.fanout, c.scale}; }

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {20, 5, {0, 3, 7, 19}, 32},
      {20, 5, {1, 2}, 128},  // all favoured are taken
      {20, 5, {}, 64},
      {9, 4, {0, 1, 2, 3, 4, 5, 6, 7, 8}, 48},
      {30, 10, {4, 5, 6, 7, 8, 9, 10}, 17},
      {64, 8, {63}, 40},
      {12, 11, {2, 9}, 128},
      {7, 3, {0, 2, 4, 6}, 16},
  };
  return cases;
}

// The probability of each neighbour by the rule itself, in float64: weights that sum to the
// fanout, capped at 1, the rest shared by those that are not.
std::vector<double> Inclusion(const Case& c) {
  std::vector<double> weight(c.degree, 1.0);
  for (const uint32_t position : c.favoured) weight[position] = c.scale / 16.0;
  std::vector<double> q(c.degree, 0);
  std::vector<bool> capped(c.degree, false);
  for (bool again = true; again;) {
    again = false;
    double left = c.fanout;
    double sum = 0;
    for (uint32_t j = 0; j < c.degree; ++j) capped[j] ? left -= 1 : sum += weight[j];
    for (uint32_t j = 0; j < c.degree; ++j) {
      q[j] = capped[j] ? 1.0 : left * weight[j] / sum;
      if (q[j] > 1) capped[j] = again = true;
    }
  }
  return q;
}

template <typename Visit>
void ForEachDraw(const Case& c, const Visit& visit) {
  const DrawStream stream = DrawStreamOf({17, 4, 1}, 0);
  std::vector<uint32_t> picks(c.fanout);
  for (uint32_t node = 0; node < kTimes; ++node) {
    const uint32_t near = PickLocally(stream, node, RowOf(c), c.favoured.data(), picks.data());
    visit(near, picks);
  }
}

TEST_CASE("favoured neighbours: weights are capped at 1 and the others share the rest") {
  const LocalityRow row{5, 2, 3, 128};
  CHECK(TakesAllFavoured(row));
  CHECK(FavouredPicks(row, 0) == 2);
  CHECK(FavouredWeight(row) == 1);
  CHECK(OtherWeight(row) == 3);
  for (const Case& c : Cases()) {
    CAPTURE(c.scale);
    const std::vector<double> q = Inclusion(c);
    for (uint32_t j = 0; j < c.degree; ++j) {
      const bool near = std::binary_search(c.favoured.begin(), c.favoured.end(), j);
      const double weight = near ? FavouredWeight(RowOf(c)) : OtherWeight(RowOf(c));
      CHECK(weight == doctest::Approx(1 / q[j]));
    }
  }
}

TEST_CASE("favoured neighbours: picks are distinct, as many as the fanout, favoured ones first") {
  for (const Case& c : Cases()) {
    CAPTURE(c.scale);
    ForEachDraw(c, [&](uint32_t near, const std::vector<uint32_t>& picks) {
      CHECK(std::set<uint32_t>(picks.begin(), picks.end()).size() == c.fanout);
      for (uint32_t j = 0; j < c.fanout; ++j) {
        CHECK(picks[j] < c.degree);
        CHECK(std::binary_search(c.favoured.begin(), c.favoured.end(), picks[j]) == (j < near));
      }
    });
  }
}

TEST_CASE("favoured neighbours come as often as they should (chi-square, level 1e-6)") {
  for (const Case& c : Cases()) {
    CAPTURE(c.degree);
    CAPTURE(c.scale);
    std::vector<double> times(c.degree, 0);
    ForEachDraw(c, [&](uint32_t, const std::vector<uint32_t>& picks) {
      for (const uint32_t pick : picks) times[pick] += 1;
    });
    const std::vector<double> q = Inclusion(c);
    // Each neighbour's own deviation; a neighbour taken every time has none.
    double chi_square = 0;
    double degrees = 0;
    for (uint32_t j = 0; j < c.degree; ++j) {
      const double expected = kTimes * q[j];
      if (q[j] == 1) {
        CHECK(times[j] == kTimes);
        continue;
      }
      const double deviation = (times[j] - expected) / std::sqrt(expected * (1 - q[j]));
      CHECK(std::abs(deviation) < 5.5);
      chi_square += deviation * deviation;
      degrees += 1;
    }
    // Inclusions of one row sum to the fanout, so that they vary less than independent ones.
    CHECK((degrees == 0 || chi_square < test::ChiSquareLimit(degrees)));
  }
}

TEST_CASE("favoured neighbours: the mean of the aggregate is that of the whole row") {
  for (const Case& c : Cases()) {
    CAPTURE(c.scale);
    double whole = 0;
    const auto value = [](uint32_t position) { return std::sin(position * 12.9898) * 10 + 3; };
    for (uint32_t j = 0; j < c.degree; ++j) whole += value(j) / c.degree;
    double sum = 0;
    double squares = 0;
    ForEachDraw(c, [&](uint32_t near, const std::vector<uint32_t>& picks) {
      double mean = 0;
      for (uint32_t j = 0; j < c.fanout; ++j) {
        const double weight = j < near ? FavouredWeight(RowOf(c)) : OtherWeight(RowOf(c));
        mean += value(picks[j]) * weight / c.degree;
      }
      sum += mean;
      squares += mean * mean;
    });
    const double mean = sum / kTimes;
    const double error = std::sqrt((squares / kTimes - mean * mean) / kTimes);
    CHECK(std::abs(mean - whole) < 4 * error + 1e-6);
  }
}

TEST_CASE("favoured neighbours come more often as the scale grows") {
  double before = 0;
  for (const uint32_t scale : {16U, 20U, 32U, 64U, 128U}) {
    double times = 0;
    ForEachDraw({40, 10, {1, 5, 9, 20, 30, 31}, scale},
                [&](uint32_t near, const std::vector<uint32_t>&) { times += near; });
    CHECK(times > before);
    before = times;
  }
}

TEST_CASE("favoured neighbours: long rows and large counts do not overflow") {
  // A node that is in half of four thousand million rows.
  const LocalityRow row{uint64_t{0xFFFFFFFE}, uint64_t{0x7FFFFFFF}, (1U << 20) - 1, kScaleMost};
  const double expected = row.fanout * 8.0 / 9.0;
  CHECK(std::abs(FavouredPicks(row, 0) - expected) <= 1);
  CHECK(std::abs(FavouredPicks(row, 0xFFFFFFFF) - expected) <= 1);
  CHECK(FavouredWeight(row) == doctest::Approx(double{0x7FFFFFFF} / expected));
  const uint32_t favoured[] = {0, 1, 4};
  const uint64_t others[] = {2, 3, 5, 6};
  for (uint64_t i = 0; i < 4; ++i) CHECK(OtherPosition(favoured, 3, i) == others[i]);
}

// [scale, fixed] after each epoch of such a share of extraction, in hundredths.
std::vector<std::pair<double, bool>> Trace(const std::vector<uint32_t>& hundredths) {
  std::vector<std::pair<double, bool>> trace;
  LocalityScale now;
  for (const uint32_t share : hundredths) {
    now = NextScale(now, share, 100 - share);
    trace.emplace_back(now.scale / 16.0, now.fixed);
  }
  return trace;
}

TEST_CASE("the scale follows the share of extraction, up to eight and back") {
  using Steps = std::vector<std::pair<double, bool>>;
  CHECK(Trace({30, 30, 30, 30}) == Steps{{2, false}, {4, false}, {8, false}, {8, true}});
  CHECK(Trace({30, 30, 10, 17}) == Steps{{2, false}, {4, false}, {3, false}, {3, true}});
  CHECK(Trace({10}) == Steps{{1, true}});
  // 20 and 15 hundredths are within.
  CHECK(Trace({20}) == Steps{{1, true}});
  CHECK(Trace({30, 15}) == Steps{{2, false}, {2, true}});
  CHECK(
      Trace({30, 10, 10, 10, 10, 10}) ==
      Steps{
          {2, false}, {1.5, false}, {1.25, false}, {1.125, false}, {1.0625, true}, {1.0625, true}});
}

TEST_CASE("the scale stays within 1 and 8, and ends, whatever epochs take") {
  for (uint32_t pattern = 0; pattern < 59'049; ++pattern) {  // 3^10
    LocalityScale now;
    uint32_t rest = pattern;
    for (uint32_t epoch = 0; epoch < 10; ++epoch, rest /= 3) {
      const uint32_t share = (rest % 3) * 15 + 3;  // 3, 18, 33
      const LocalityScale next = NextScale(now, share, 100 - share);
      REQUIRE(next.scale >= kScaleOne);
      REQUIRE(next.scale <= kScaleMost);
      if (now.fixed) REQUIRE(next.scale == now.scale);
      now = next;
    }
    for (uint32_t epoch = 0; epoch < 12; ++epoch) now = NextScale(now, 3, 97);
    REQUIRE(now.fixed);
  }
}

}  // namespace
}  // namespace gnnd
