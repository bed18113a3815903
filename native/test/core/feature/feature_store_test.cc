#include "core/feature/feature_store.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "core/base/huge_array.h"
#include "core/feature/hot_order.h"
#include "core/graph/features.h"
#include "test/support/graphs.h"
#include "test/support/halves.h"

namespace gnnd {
namespace {

// Rows of `dim` floats, all different.
std::vector<float> Table(uint32_t num_nodes, uint32_t dim) {
  std::vector<float> table(uint64_t{num_nodes} * dim);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i) * 0.5F - 3;
  return table;
}

struct Marked {
  std::vector<uint32_t> order;
  std::vector<uint32_t> rank_of;

  explicit Marked(std::vector<uint32_t> hot) : order(std::move(hot)), rank_of(order.size()) {
    for (uint32_t rank = 0; rank < order.size(); ++rank) rank_of[order[rank]] = rank;
  }
  std::vector<uint32_t> ranks(const std::vector<uint32_t>& nodes, uint64_t largest) const {
    std::vector<uint32_t> ranks(nodes.size());
    RankTable(rank_of, largest).Mark(nodes, ranks.data());
    return ranks;
  }
};

// Rows read through stores of this table with caches of any size are bit-equal to `values`.
void CheckAnyCache(const RowTable& given, const std::vector<float>& values, uint64_t seed) {
  constexpr uint32_t kNodes = 300;
  const uint64_t dim = given.dim();
  // Mapped, as a dataset is: a sanitizer's heap lies too far from a cache for 32-bit row numbers.
  HugeArray<std::byte> mapped(given.bytes().size());
  std::memcpy(mapped.data(), given.bytes().data(), mapped.size());
  const RowTable table(given.type(), {mapped.data(), mapped.size()}, dim);
  const Marked marked(test::RandomNodes(seed, kNodes, kNodes));
  const std::vector<uint32_t> nodes = test::RandomNodes(seed + 1, kNodes, 120);
  for (const uint64_t rows : {0U, 1U, 30U, 299U, 300U}) {
    CAPTURE(rows);
    const Result<FeatureStore> store = FeatureStore::Create({table, marked.order, rows, false});
    REQUIRE_MESSAGE(store.ok(), store.status().message());
    REQUIRE(store->cache_rows() == rows);
    CHECK(store->cache_bytes() == rows * table.row_bytes());
    // Marks may reach beyond this cache: a record serves larger ones, too.
    const std::vector<uint32_t> ranks = marked.ranks(nodes, 200);
    std::vector<uint32_t> scratch(nodes.size());
    const auto located = store->Locate(nodes, ranks, scratch.data());
    std::vector<float> out(nodes.size() * dim);
    GatherRows(store->table(), located, out);
    uint64_t hits = 0;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const bool hit = ranks[i] < rows;
      hits += hit ? 1 : 0;
      CHECK((store->table().row(located[i]) == table.row(nodes[i])) == !hit);
      CHECK(std::memcmp(out.data() + i * dim, values.data() + uint64_t{nodes[i]} * dim,
                        dim * sizeof(float)) == 0);
    }
    const TierTraffic traffic = store->TrafficOf(nodes, ranks);
    const auto rows_of = [&](Tier tier) { return traffic.rows[static_cast<uint32_t>(tier)]; };
    CHECK(rows_of(Tier::kDevice) == hits);
    CHECK(rows_of(Tier::kHost) == nodes.size() - hits);
    CHECK(rows_of(Tier::kDisk) == 0);
    const uint64_t host_bytes = traffic.bytes[static_cast<uint32_t>(Tier::kHost)];
    CHECK(host_bytes == (nodes.size() - hits) * table.row_bytes());
  }
}

TEST_CASE("whatever the cache holds, rows are bit-equal to the table's") {
  const uint64_t seed = test::RandomSeed(77);
  CAPTURE(seed);
  for (const uint32_t dim : {1U, 3U, 16U, 100U, 257U}) {
    CAPTURE(dim);
    const std::vector<float> table = Table(300, dim);
    CheckAnyCache(RowTable(table, dim), table, seed);
    const std::vector<Half> halves = test::RandomHalves(300 * dim, seed);
    CheckAnyCache(RowTable(halves, dim), test::Widened(halves), seed);
  }
}

TEST_CASE("records without marks read everything from behind the cache") {
  const std::vector<float> table = Table(20, 4);
  const Marked marked(test::RandomNodes(1, 20, 20));
  const Result<FeatureStore> store =
      FeatureStore::Create({RowTable(table, 4), marked.order, 20, true});
  REQUIRE(store.ok());
  const std::vector<uint32_t> nodes{3, 19, 0};
  std::vector<uint32_t> scratch(3);
  const auto located = store->Locate(nodes, {}, scratch.data());
  for (size_t i = 0; i < 3; ++i) {
    CHECK(store->table().row(located[i]) == RowTable(table, 4).row(nodes[i]));
  }
  CHECK(store->TrafficOf(nodes, {}).rows[static_cast<uint32_t>(Tier::kDisk)] == 3);
}

TEST_CASE("a store without a cache locates nodes at themselves and copies nothing") {
  const std::vector<float> table = Table(20, 4);
  const Result<FeatureStore> store = FeatureStore::Create({RowTable(table, 4), {}, 0, false});
  REQUIRE(store.ok());
  const std::vector<uint32_t> nodes{3, 19, 0};
  const auto located = store->Locate(nodes, {}, nullptr);
  CHECK(located.data() == nodes.data());
  CHECK(store->cache_bytes() == 0);
}

TEST_CASE("a cache larger than the graph or its order is refused") {
  const std::vector<float> table = Table(20, 4);
  const std::vector<uint32_t> order{1, 2};
  CHECK(FeatureStore::Create({RowTable(table, 4), order, 3, false}).status().code() ==
        Code::kInvalidArgument);
  const std::vector<uint32_t> beyond{1, 20};
  CHECK(FeatureStore::Create({RowTable(table, 4), beyond, 2, false}).status().code() ==
        Code::kInvalidArgument);
}

}  // namespace
}  // namespace gnnd
