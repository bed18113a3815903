#include "core/prepare/hot_curve.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "core/feature/hot_order.h"
#include "test/support/sampling.h"

namespace gnnd {
namespace {

TEST_CASE("the runs of a hot order have every row once, with what it was counted and where") {
  const uint64_t seed = test::RandomSeed(21);
  CAPTURE(seed);
  std::mt19937_64 generator(seed);
  for (const uint32_t nodes : {1U, 7U, 8U, 129U, 5'003U}) {
    CAPTURE(nodes);
    Hotness hotness(nodes);
    std::vector<uint32_t> counts(nodes);
    for (uint32_t v = 0; v < nodes; ++v) {
      hotness[v] = static_cast<float>(generator() % 50);
      counts[v] = static_cast<uint32_t>(generator() % 9);
    }
    const std::vector<uint32_t> order = OrderByHotness(hotness);
    const std::vector<HotRun> runs = HotRunsOf(order, hotness, counts, 3);
    uint64_t from = 0;
    for (const HotRun& run : runs) {
      REQUIRE(run.rows >= 1);
      CHECK(run.rows <= std::max<uint64_t>(1, from / 128));
      HotRun expected;
      for (const uint32_t node : std::span(order).subspan(from, run.rows)) {
        uint32_t part = 0;
        while (part + 1 < kIdParts && uint64_t{node} * kIdParts >= (part + 1) * uint64_t{nodes}) {
          ++part;
        }
        ++expected.part_rows[part];
        expected.part_reads[part] += counts[node] / 3.0;
        expected.hotness += hotness[node] / static_cast<double>(run.rows);
      }
      CHECK(run.hotness == doctest::Approx(expected.hotness));
      CHECK(run.part_rows == expected.part_rows);
      for (uint32_t part = 0; part < kIdParts; ++part) {
        CHECK(run.part_reads[part] == doctest::Approx(expected.part_reads[part]));
      }
      from += run.rows;
    }
    CHECK(from == nodes);
    CHECK(std::is_sorted(runs.begin(), runs.end(), [](const HotRun& one, const HotRun& other) {
      return one.hotness > other.hotness;
    }));
  }
}

TEST_CASE("a hot order of ten million nodes has fewer than two thousand runs") {
  constexpr uint32_t kNodes = 10'000'000;
  std::vector<uint32_t> order(kNodes);
  std::iota(order.begin(), order.end(), 0U);
  const std::vector<uint32_t> counts(kNodes, 1);
  const std::vector<HotRun> runs = HotRunsOf(order, Hotness(kNodes, 1.0F), counts, 1);
  CHECK(runs.size() > 1000);
  CHECK(runs.size() < 2000);
}

}  // namespace
}  // namespace gnnd
