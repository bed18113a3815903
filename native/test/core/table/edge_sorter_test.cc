#include "core/table/edge_sorter.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace gnnd {
namespace {

using Rows = std::vector<std::vector<uint32_t>>;

// Adds edges in blocks, settles where more than `entries_max` are held, and takes all rows.
Rows Sort(const EdgeSorterOptions& options, const std::vector<uint32_t>& ends, EdgeCounts* counts) {
  const auto sorter = EdgeSorter::Open(options);
  constexpr size_t kBlock = 200;
  for (size_t at = 0; at < ends.size(); at += kBlock) {
    const std::span block(ends.data() + at, std::min(kBlock, ends.size() - at));
    REQUIRE(sorter->Add({block, {}, {}, 0}));
    if (sorter->NumHeld() >= options.entries_max) REQUIRE(sorter->Settle().ok());
  }
  Rows rows;
  for (size_t before = 0;;) {
    auto next = sorter->Next();
    REQUIRE(next.ok());
    if (!*next) break;
    size_t at = 0;
    for (const int64_t end : (*next)->ends) {
      const size_t count = static_cast<size_t>(end) - before;
      before = static_cast<size_t>(end);
      rows.emplace_back((*next)->indices.begin() + static_cast<std::ptrdiff_t>(at),
                        (*next)->indices.begin() + static_cast<std::ptrdiff_t>(at + count));
      at += count;
    }
    CHECK(at == (*next)->indices.size());
  }
  *counts = sorter->counts();
  return rows;
}

TEST_CASE("edge sorter: rows are those of a plain list, whatever fits into memory") {
  std::mt19937 random(3);
  for (const uint32_t num_nodes : {1U, 7U, 5'000U, 70'000U}) {
    std::vector<uint32_t> ends(40'000);
    // Half of the ends are few nodes, so that some rows are long.
    for (uint32_t& end : ends)
      end = static_cast<uint32_t>(random()) %
            (random() % 2 == 0 ? std::min(num_nodes, 9U) : num_nodes);
    for (const bool once : {false, true}) {
      Rows expected(num_nodes);
      std::map<std::pair<uint32_t, uint32_t>, int> seen;
      for (size_t at = 0; at < ends.size(); at += 2) {
        for (const auto& [row, column] :
             {std::pair(ends[at + 1], ends[at]), std::pair(ends[at], ends[at + 1])}) {
          if (!once) expected[row].push_back(column);
          if (once && row != column && ++seen[{row, column}] == 1) expected[row].push_back(column);
        }
      }
      if (once) {
        for (auto& row : expected) std::ranges::sort(row);
      }
      for (const uint64_t memory : {uint64_t{0}, uint64_t{100'000}, uint64_t{1} << 30}) {
        const EdgeSorterOptions options = {num_nodes, false, once, true, "/tmp", 1'000, memory};
        EdgeCounts counts;
        CHECK(Sort(options, ends, &counts) == expected);
        size_t kept = 0;
        for (const auto& row : expected) kept += row.size();
        CHECK(counts.entries == kept);
        CHECK(kept + counts.repeated + 2 * counts.self_loops == ends.size());
      }
    }
  }
}

TEST_CASE("edge sorter: sources may have ids of their own, of which none is a row's") {
  std::mt19937 random(5);
  for (const uint32_t num_sources : {3U, 4'000U, 90'000U}) {
    const uint32_t num_nodes = 20'000;
    std::vector<uint32_t> ends(30'000);
    Rows expected(num_nodes);
    for (size_t at = 0; at < ends.size(); at += 2) {
      ends[at] = static_cast<uint32_t>(random()) % num_sources;
      ends[at + 1] = static_cast<uint32_t>(random()) % std::min(num_nodes, 3'000U);
      expected[ends[at + 1]].push_back(ends[at]);
    }
    for (auto& row : expected) {
      std::ranges::sort(row);
      row.erase(std::unique(row.begin(), row.end()), row.end());
    }
    EdgeSorterOptions options = {num_nodes, false, true, false, "/tmp", 1'000, 50'000};
    options.num_sources = num_sources;
    EdgeCounts counts;
    CHECK(Sort(options, ends, &counts) == expected);
    CHECK(counts.self_loops == 0);
    const auto sorter = EdgeSorter::Open(options);
    CHECK_FALSE(sorter->Add({std::vector<uint32_t>{num_sources, 0}, {}, {}, 0}));
    CHECK_FALSE(sorter->Add({std::vector<uint32_t>{0, num_nodes}, {}, {}, 0}));
    CHECK(sorter->Add({std::vector<uint32_t>{num_sources - 1, num_nodes - 1}, {}, {}, 0}));
  }
}

TEST_CASE("edge sorter: adds nothing where an end is no node") {
  const auto sorter = EdgeSorter::Open({3, false, false, false, "/tmp", 10, 0});
  const std::vector<uint32_t> bad = {0, 1, 3, 0};
  CHECK_FALSE(sorter->Add({bad, {}, {}, 0}));
  CHECK(sorter->NumHeld() == 0);
}

TEST_CASE("edge sorter: says that its file cannot be made") {
  const auto sorter = EdgeSorter::Open({3, false, false, false, "/nowhere", 1, 0});
  const std::vector<uint32_t> ends = {0, 1};
  REQUIRE(sorter->Add({ends, {}, {}, 0}));
  CHECK(sorter->Settle().code() == Code::kIo);
}

}  // namespace
}  // namespace gnnd
