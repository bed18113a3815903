#include "core/graph/csr.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "test/support/npy_files.h"

namespace gnnd {
namespace {

struct EdgeList {
  std::vector<uint32_t> src;
  std::vector<uint32_t> dst;
};

// Rows as sorted multisets, duplicates and self-loops filtered one edge at a time.
Csr NaiveCsr(const EdgeList& edges, uint32_t num_nodes, CsrOptions options) {
  std::vector<std::multiset<uint32_t>> rows(num_nodes);
  const auto add = [&](uint32_t row, uint32_t neighbour) {
    const bool again = row == neighbour || rows[row].contains(neighbour);
    if (!(again && options.drop_self_loops_and_duplicates)) rows[row].insert(neighbour);
  };
  for (size_t i = 0; i < edges.src.size(); ++i) {
    add(edges.dst[i], edges.src[i]);
    if (options.make_undirected && edges.src[i] != edges.dst[i]) add(edges.src[i], edges.dst[i]);
  }
  Csr csr;
  csr.indptr.push_back(0);
  for (const auto& row : rows) {
    csr.indices.insert(csr.indices.end(), row.begin(), row.end());
    csr.indptr.push_back(static_cast<int64_t>(csr.indices.size()));
  }
  return csr;
}

void CheckEqual(const EdgeList& edges, uint32_t num_nodes, CsrOptions options) {
  const Result<Csr> csr = BuildCsr(edges.src, edges.dst, num_nodes, options);
  REQUIRE(csr.ok());
  const Csr naive = NaiveCsr(edges, num_nodes, options);
  CHECK(csr->indptr == naive.indptr);
  CHECK(csr->indices == naive.indices);
}

uint32_t SeedOfRun() {
  const char* given = std::getenv("GNND_SEED");
  return given != nullptr ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : 7;
}

TEST_CASE("csr: a row holds the in-neighbours of its node, ascending") {
  const EdgeList edges{{2, 0, 1, 2}, {1, 1, 0, 2}};
  const Result<Csr> csr = BuildCsr(edges.src, edges.dst, 4, {});
  REQUIRE(csr.ok());
  CHECK(csr->indptr == std::vector<int64_t>{0, 1, 3, 4, 4});
  CHECK(csr->indices == std::vector<uint32_t>{1, 0, 2, 2});
}

TEST_CASE("csr: undirected without duplicates is symmetric and simple") {
  const EdgeList edges{{0, 1, 0, 3, 2}, {1, 0, 1, 3, 0}};
  const Result<Csr> csr = BuildCsr(
      edges.src, edges.dst, 4, {.make_undirected = true, .drop_self_loops_and_duplicates = true});
  REQUIRE(csr.ok());
  CHECK(csr->indptr == std::vector<int64_t>{0, 2, 3, 4, 4});
  CHECK(csr->indices == std::vector<uint32_t>{1, 2, 0, 0});
}

TEST_CASE("csr: equals a set-based construction on random edge lists, in any order of edges") {
  const uint32_t seed = SeedOfRun();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    const uint32_t num_nodes = 1 + static_cast<uint32_t>(random() % 50);
    EdgeList edges;
    for (size_t i = random() % 400; i > 0; --i) {
      // Skewed towards low ids, so that hubs, duplicates and self-loops are frequent.
      edges.src.push_back(static_cast<uint32_t>(random() % num_nodes * (random() % 2)));
      edges.dst.push_back(static_cast<uint32_t>(random() % num_nodes));
    }
    for (const bool undirected : {false, true}) {
      for (const bool drop : {false, true}) {
        CheckEqual(edges, num_nodes, {undirected, drop});
        EdgeList reversed{{edges.src.rbegin(), edges.src.rend()},
                          {edges.dst.rbegin(), edges.dst.rend()}};
        CheckEqual(reversed, num_nodes, {undirected, drop});
      }
    }
  }
}

TEST_CASE("csr: no edges give empty rows") {
  const Result<Csr> csr = BuildCsr({}, {}, 3, {});
  REQUIRE(csr.ok());
  CHECK(csr->indptr == std::vector<int64_t>{0, 0, 0, 0});
  CHECK(csr->indices.empty());
}

TEST_CASE("csr: ids that are no nodes and lists of different length are refused") {
  const std::vector<uint32_t> good = {0, 1, 2};
  const std::vector<uint32_t> bad = {0, 3, 4};
  const Status source = BuildCsr(bad, good, 3, {}).status();
  CHECK(source.code() == Code::kInvalidArgument);
  CHECK(source.message() == "edge 1: source 3 is not below the 3 nodes");
  CHECK(BuildCsr(good, bad, 3, {}).status().message() ==
        "edge 1: destination 3 is not below the 3 nodes");
  CHECK(BuildCsr(good, {}, 3, {}).status().message() == "3 sources, but 0 destinations");
}

}  // namespace
}  // namespace gnnd
