#include "core/prepare/walk_positives.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/draw/philox.h"
#include "core/draw/purpose.h"
#include "core/graph/npy.h"
#include "test/support/npy_files.h"

namespace gnnd {
namespace {

using Pair = std::pair<uint32_t, uint32_t>;  // destination, source

// A small graph of its own: rows of in-neighbours.
struct Small {
  explicit Small(std::vector<std::vector<uint32_t>> given) : rows(std::move(given)) {
    indptr.push_back(0);
    for (const auto& row : rows) {
      indices.insert(indices.end(), row.begin(), row.end());
      indptr.push_back(static_cast<int64_t>(indices.size()));
    }
  }
  Edges edges() const { return {indptr, indices}; }
  uint32_t size() const { return static_cast<uint32_t>(rows.size()); }

  std::vector<std::vector<uint32_t>> rows;
  std::vector<int64_t> indptr;
  std::vector<uint32_t> indices;
};

// Edges in one direction alone, a loop, a repeated edge, a node that walks end at.
Small Crooked() { return Small({{1}, {0, 2, 3, 4}, {1, 1, 3}, {1, 5}, {1, 4, 5}, {}}); }

std::vector<Pair> PairsOf(const Small& graph, const PositiveWalks& walks,
                          uint64_t held = kHeldPairs) {
  const test::TempFolder folder;
  const Result<uint64_t> count = WriteWalkPositives(graph.edges(), walks, held, folder.path());
  REQUIRE_MESSAGE(count.ok(), count.status().message());
  const Result<NpyArray> array = NpyArray::Open(folder / "links_train.npy");
  REQUIRE_MESSAGE(array.ok(), array.status().message());
  REQUIRE(array->shape().size() == 2);
  CHECK(array->shape()[0] == *count);
  CHECK(array->shape()[1] == 2);
  std::vector<Pair> pairs;
  const auto ends = array->values<uint32_t>();
  for (size_t i = 0; i < ends.size(); i += 2) pairs.emplace_back(ends[i + 1], ends[i]);
  return pairs;
}

// Word by word, as the header says: the counter of a step's block is put together here.
std::vector<Pair> ByTheWord(const Small& graph, const PositiveWalks& walks) {
  std::vector<Pair> pairs;
  for (uint32_t start = 0; start < graph.size(); ++start) {
    for (uint32_t w = 0; w < walks.per_node; ++w) {
      std::vector<uint32_t> nodes = {start};
      for (uint32_t s = 0; s < walks.length && !graph.rows[nodes.back()].empty(); ++s) {
        const uint32_t block = w * walks.length + s;
        const PhiloxWords words =
            Philox(PageKey(KeyOf(walks.random_seed), 0),
                   CounterOf(Purpose::kWalk, kLinkSplitEpoch, 0, 0, start, block));
        const auto& row = graph.rows[nodes.back()];
        const auto share = static_cast<long double>(words.word[1]) / 0x1p32L +
                           static_cast<long double>(words.word[0]) / 0x1p64L;
        nodes.push_back(row[static_cast<size_t>(share * static_cast<long double>(row.size()))]);
      }
      for (size_t j = 0; j < nodes.size(); ++j) {
        for (size_t i = 0; i < j; ++i) {
          if (j - i > walks.window || nodes[i] == nodes[j]) continue;
          pairs.emplace_back(nodes[i], nodes[j]);
        }
      }
    }
  }
  std::ranges::sort(pairs);
  return pairs;
}

TEST_CASE("positives of walks are those of walks that are gone word by word, in any memory") {
  const Small graph = Crooked();
  for (const PositiveWalks walks : {PositiveWalks{3, 5, 2, 11}, PositiveWalks{1, 1, 1, 11},
                                    PositiveWalks{7, 4, 4, 11}, PositiveWalks{3, 5, 2, 12}}) {
    const std::vector<Pair> expected = ByTheWord(graph, walks);
    CHECK(PairsOf(graph, walks) == expected);
    for (const uint64_t held : {1U, 5U, 16U}) CHECK(PairsOf(graph, walks, held) == expected);
    CHECK(expected.size() <= graph.size() * MostWalkPairs(walks));
  }
  CHECK(PairsOf(graph, {3, 5, 2, 11}) != PairsOf(graph, {3, 5, 2, 12}));
  CHECK(MostWalkPairs({3, 5, 2, 0}) == 3 * (5 + 4));
  CHECK(MostWalkPairs({2, 3, 3, 0}) == 2 * (3 + 2 + 1));
}

TEST_CASE("a walk around a ring gives each of its pairs, in the direction of edges") {
  std::vector<std::vector<uint32_t>> rows(10);
  for (uint32_t v = 0; v < 10; ++v) rows[v] = {(v + 9) % 10};
  std::vector<Pair> expected;
  for (uint32_t v = 0; v < 10; ++v) {
    for (uint32_t at = 0; at < 4; ++at)
      expected.emplace_back((v + 10 - at) % 10, (v + 9 - at) % 10);
    for (uint32_t at = 0; at < 3; ++at)
      expected.emplace_back((v + 10 - at) % 10, (v + 8 - at) % 10);
  }
  std::ranges::sort(expected);
  CHECK(PairsOf(Small(rows), {1, 4, 2, 3}) == expected);
}

// Probability that a walk from each node is at each other one after so many steps, [from][to];
// walks that ended are nowhere.
std::vector<std::vector<double>> After(const Small& graph, uint32_t steps) {
  std::vector<std::vector<double>> at(graph.size(), std::vector<double>(graph.size()));
  for (uint32_t v = 0; v < graph.size(); ++v) at[v][v] = 1;
  for (uint32_t s = 0; s < steps; ++s) {
    for (auto& from : at) {
      std::vector<double> next(graph.size());
      for (uint32_t v = 0; v < graph.size(); ++v) {
        for (const uint32_t u : graph.rows[v]) {
          next[u] += from[v] / static_cast<double>(graph.rows[v].size());
        }
      }
      from = next;
    }
  }
  return at;
}

std::map<Pair, double> CountsOf(const Small& graph, const PositiveWalks& walks) {
  std::map<Pair, double> counts;
  for (const Pair& pair : PairsOf(graph, walks)) ++counts[pair];
  return counts;
}

constexpr uint32_t kWalks = 40'000;

TEST_CASE("first steps are drawn alike among neighbours") {
  const Small graph = Crooked();
  std::map<Pair, double> counts = CountsOf(graph, {kWalks, 1, 1, 5});
  const auto one = After(graph, 1);
  double chi = 0;
  uint32_t cells = 0;
  for (uint32_t from = 0; from < graph.size(); ++from) {
    for (uint32_t to = 0; to < graph.size(); ++to) {
      const double expected = from == to ? 0 : kWalks * one[from][to];
      const double found = counts[{from, to}];
      if (expected == 0 || one[from][to] == 1) {
        CHECK(found == expected);
        continue;
      }
      chi += (found - expected) * (found - expected) / expected;
      ++cells;
    }
  }
  // Fewer degrees of freedom than cells, of which 3 deviations.
  CHECK(cells == 10);
  CHECK(chi < cells + 3 * std::sqrt(2.0 * cells));
}

TEST_CASE("how often walks visit two nodes together follows from the graph") {
  // Pairs of a walk depend on each other, so that each share is compared, within 5 deviations of
  // as many independent ones times the most pairs that a walk gives of them.
  const Small graph = Crooked();
  std::map<Pair, double> counts = CountsOf(graph, {kWalks, 4, 3, 5});
  std::vector<std::vector<std::vector<double>>> after;
  for (uint32_t steps = 0; steps < 5; ++steps) after.push_back(After(graph, steps));
  for (uint32_t from = 0; from < graph.size(); ++from) {
    for (uint32_t to = 0; to < graph.size(); ++to) {
      if (from == to) continue;
      double expected = 0;
      for (uint32_t i = 0; i < 4; ++i) {
        for (uint32_t j = i + 1; j <= std::min(4U, i + 3); ++j) {
          for (uint32_t start = 0; start < graph.size(); ++start) {
            expected += kWalks * after[i][start][from] * after[j - i][from][to];
          }
        }
      }
      CHECK(std::abs(counts[{from, to}] - expected) <= 5 * 4 * std::sqrt(expected + 1));
    }
  }
}

TEST_CASE("walks that come to no pair, or to more than items can be, are refused") {
  const test::TempFolder folder;
  const auto refusal = [&folder](const Small& graph, const PositiveWalks& walks) {
    return WriteWalkPositives(graph.edges(), walks, kHeldPairs, folder.path()).status();
  };
  CHECK(refusal(Small({{}, {1}}), {2, 3, 2, 1}).code() == Code::kInvalidArgument);
  const Status many = refusal(Crooked(), {1U << 30, 1, 1, 1});
  CHECK(many.code() == Code::kInvalidArgument);
  CHECK(many.message().find("1073741824 pairs of each of 6 nodes") != std::string::npos);
}

}  // namespace
}  // namespace gnnd
