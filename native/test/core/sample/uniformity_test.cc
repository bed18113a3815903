#include <doctest/doctest.h>

#include <map>
#include <vector>

#include "core/sample/sampler.h"
#include "test/support/chi_square.h"
#include "test/support/graphs.h"
#include "test/support/sampling.h"

// Are the draws uniform? Each test is a chi-square at level 1e-6 with fixed keys: it always gives
// the same answer, and the frozen draws pass it.

namespace gnnd {
namespace {

constexpr uint32_t kRows = 2000;
constexpr uint32_t kBatches = 10;

// kRows rows with the same `degree` neighbours, nodes kRows .. kRows + degree.
test::Graph SameRows(uint32_t degree) {
  test::Graph graph;
  std::vector<uint32_t> row(degree);
  for (uint32_t j = 0; j < degree; ++j) row[j] = kRows + j;
  for (uint32_t v = 0; v < kRows; ++v) graph.AddRow(row);
  for (uint32_t j = 0; j < degree; ++j) graph.AddRow({});
  return graph;
}

// Calls visit(picks) with the positions that each row of each batch drew.
template <typename Visit>
void ForEachRow(uint32_t degree, int32_t fanout, const Visit& visit, bool replace = false) {
  const test::Graph graph = SameRows(degree);
  std::vector<uint32_t> seeds(kRows);
  for (uint32_t v = 0; v < kRows; ++v) seeds[v] = v;
  SamplerOptions options{.fanouts = {fanout}, .weights = EdgeWeights::kNone};
  options.replace = replace;
  test::SamplerUnderTest sampler(graph.view(), options, kRows, DetectInstructionSet());
  for (uint32_t batch = 0; batch < kBatches; ++batch) {
    const Sample sample = sampler.Sample({17, 4, batch}, seeds);
    const BlockView block = sample.block(0);
    std::vector<uint32_t> picks;
    for (uint32_t row = 0; row < block.num_dst; ++row) {
      picks.clear();
      for (uint32_t e = block.indptr[row]; e < block.indptr[row + 1]; ++e) {
        picks.push_back(sample.nodes()[block.src[e]] - kRows);
      }
      visit(picks);
    }
  }
}

TEST_CASE("every neighbour is drawn equally often (chi-square, level 1e-6)") {
  struct Case {
    uint32_t degree;
    int32_t fanout;
  };
  for (const Case& c : {Case{6, 5}, Case{20, 10}, Case{100, 15}, Case{33, 32}, Case{60, 40}}) {
    CAPTURE(c.degree);
    CAPTURE(c.fanout);
    std::vector<double> times(c.degree, 0);
    ForEachRow(c.degree, c.fanout, [&](const std::vector<uint32_t>& picks) {
      for (const uint32_t pick : picks) times[pick] += 1;
    });
    const double share = static_cast<double>(c.fanout) / c.degree;
    const double expected = kRows * kBatches * share;
    double chi_square = 0;
    for (const double observed : times) {
      chi_square += (observed - expected) * (observed - expected) / expected;
    }
    // Draws without replacement vary less than independent ones: an inclusion has
    // variance share * (1 - share), and the last neighbour's follows from the others'.
    chi_square *= (c.degree - 1.0) / c.degree / (1.0 - share);
    CHECK(chi_square < test::ChiSquareLimit(c.degree - 1.0));
  }
}

TEST_CASE("with replacement, every pair of draws is equally likely (chi-square, level 1e-6)") {
  constexpr uint32_t kDegree = 9;
  for (const int32_t fanout : {2, 40}) {  // by group and row by row
    CAPTURE(fanout);
    std::vector<double> times(kDegree * kDegree, 0);
    ForEachRow(
        kDegree, fanout,
        [&](const std::vector<uint32_t>& picks) {
          REQUIRE(picks.size() == static_cast<size_t>(fanout));
          times[picks[0] * kDegree + picks.back()] += 1;
        },
        true);
    const std::vector<double> expected(times.size(), kRows * kBatches / 81.0);
    CHECK(test::ChiSquare(times, expected) < test::ChiSquareLimit(80));
  }
}

TEST_CASE("every set of neighbours is drawn equally often (chi-square, level 1e-6)") {
  std::map<uint32_t, double> times;  // occurrences by bit mask of the set
  ForEachRow(7, 3, [&](const std::vector<uint32_t>& picks) {
    uint32_t set = 0;
    for (const uint32_t pick : picks) set |= 1U << pick;
    times[set] += 1;
  });
  CHECK(times.size() == 35);
  constexpr double kExpected = kRows * kBatches / 35.0;
  double chi_square = 0;
  for (const auto& [set, observed] : times) {
    chi_square += (observed - kExpected) * (observed - kExpected) / kExpected;
  }
  CHECK(chi_square < test::ChiSquareLimit(34));
}

}  // namespace
}  // namespace gnnd
