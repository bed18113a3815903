#include "core/feature/history_cache.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "core/base/huge_array.h"
#include "core/base/memfd.h"
#include "core/feature/feature_store.h"
#include "core/feature/hot_order.h"
#include "core/graph/features.h"
#include "test/support/graphs.h"
#include "test/support/sampling.h"

namespace gnnd {
namespace {

constexpr uint32_t kNodes = 500;
constexpr uint64_t kCached = 200;

// Features of a mapped file: they begin anywhere in a page, as behind a header.
struct Features {
  Features(uint32_t dim, uint64_t offset) : memory(offset + uint64_t{kNodes} * dim * 4) {
    auto* values = reinterpret_cast<float*>(memory.data() + offset);
    for (uint64_t i = 0; i < uint64_t{kNodes} * dim; ++i) values[i] = static_cast<float>(i) + 0.5F;
    table = RowTable(std::span<const float>(values, uint64_t{kNodes} * dim), dim);
    order = test::RandomNodes(dim, kNodes, kNodes);
    ranks.resize(kNodes);
    for (uint32_t rank = 0; rank < kNodes; ++rank) ranks[order[rank]] = rank;
  }

  HistoryConfig Config() const {
    HistoryConfig config;
    config.bytes = kCached * table.row_bytes() * 3 / 4;
    config.t_stale = 1000;
    config.row_bytes = 16;
    config.levels = 1;
    config.num_nodes = kNodes;
    config.feature_bytes = static_cast<uint32_t>(table.row_bytes());
    config.cache_rows = kCached;
    return config;
  }

  HugeArray<std::byte> memory;
  RowTable table;
  std::vector<uint32_t> order;
  std::vector<uint32_t> ranks;
};

// Every node's row is the table's, and as many come from the cache as there are below the border.
void CheckRows(const Features& f, const FeatureStore& store, uint64_t border) {
  std::vector<uint32_t> nodes(kNodes);
  for (uint32_t v = 0; v < kNodes; ++v) nodes[v] = v;
  std::vector<uint32_t> scratch(kNodes);
  const auto located = store.Locate(nodes, f.ranks, scratch.data());
  uint64_t cached = 0;
  uint64_t wrong = 0;
  for (uint32_t v = 0; v < kNodes; ++v) {
    const std::byte* row = store.table().row(located[v]);
    cached += row == f.table.row(v) ? 0 : 1;
    wrong += std::memcmp(row, f.table.row(v), f.table.row_bytes()) == 0 ? 0 : 1;
  }
  CHECK(wrong == 0);
  CHECK(cached == border);
  CHECK(store.cache_rows() == border);
  const TierTraffic traffic = store.TrafficOf(nodes, f.ranks);
  CHECK(traffic.rows[static_cast<uint32_t>(Tier::kDevice)] == border);
  std::vector<std::byte> read(kNodes * f.table.row_bytes());
  store.Read(nodes, f.ranks, read.data());
  CHECK(std::memcmp(read.data(), f.table.row(0), read.size()) == 0);
}

Result<FeatureStore> StoreOf(const Features& f, const HistoryCache& cache) {
  FeatureStore::Options options{f.table, f.order, kCached};
  options.lent = cache.rows();
  return FeatureStore::Create(options);
}

// Stores `count` embeddings of all ones: poison for whoever still reads features there.
void StoreOnes(JobHistory* history, uint64_t version, uint32_t count) {
  const std::vector<std::byte> ones(16, std::byte{0xFF});
  HistoryNote note;
  for (uint32_t i = 0; i < count; ++i) {
    note.admitted.push_back({0, static_cast<uint32_t>((version * 97 + i) % kNodes)});
    note.rows.push_back(ones.data());
  }
  history->Write(version, 0, note);
}

TEST_CASE("cached rows in a Trainer's own history are read below the border, others behind it") {
  for (const uint32_t dim : {1U, 3U, 32U, 100U, 1433U}) {
    CAPTURE(dim);
    const Features f(dim, 128);
    const HistoryConfig config = f.Config();
    const uint64_t bytes = JobHistory::BytesOf(config, 1) + kHugePageBytes;
    JobHistory history(config, AddressesNear(f.table, bytes));
    const Result<HistoryCache> cache = HistoryCache::Create(config, {}, f.table, f.order, &history);
    REQUIRE_MESSAGE(cache.ok(), cache.status().message());
    Result<FeatureStore> store = StoreOf(f, *cache);
    REQUIRE_MESSAGE(store.ok(), store.status().message());
    REQUIRE(store->most_cache_rows() == kCached);
    CheckRows(f, *store, kCached);
    uint64_t least = kCached;
    for (uint64_t version = 0; version < 40; ++version) {
      StoreOnes(&history, version, 1 + dim / 4);
      history.BringUp();
      store->set_border(history.features());
      least = history.features();
      CheckRows(f, *store, least);
    }
    CHECK(least < kCached);
  }
}

TEST_CASE("cached rows in a shared history are seen by all who map it, wherever that is") {
  for (const uint32_t dim : {1U, 3U, 24U, 100U, 1024U, 1433U, 2049U}) {
    for (const uint64_t offset : {64U, 128U, 4092U}) {
      CAPTURE(dim);
      CAPTURE(offset);
      // Two Trainers, each with features and the history mapped at addresses of its own; the
      // history's part of the file begins at a page.
      const Features one(dim, offset);
      const Features two(dim, offset);
      const HistoryConfig config = one.Config();
      const uint64_t bytes = JobHistory::BytesOf(config, 1);
      const Result<UniqueFd> fd = CreateMemfd("history", bytes + kPageBytes);
      REQUIRE(fd.ok());
      const Result<Mapping> mine = Mapping::Map(fd->get(), true);
      const Result<Mapping> others = Mapping::Map(fd->get(), true);
      REQUIRE(mine.ok());
      REQUIRE(others.ok());
      JobHistory::Init(mine->data() + kPageBytes);
      JobHistory history(config, 1, mine->data() + kPageBytes);
      JobHistory other(config, 1, others->data() + kPageBytes);
      const HistoryFile file{fd->get(), kPageBytes};
      const auto cache = HistoryCache::Create(config, file, one.table, one.order, &history);
      const auto seen = HistoryCache::Create(config, file, two.table, two.order, &other);
      REQUIRE_MESSAGE(cache.ok(), cache.status().message());
      REQUIRE_MESSAGE(seen.ok(), seen.status().message());
      Result<FeatureStore> store = StoreOf(one, *cache);
      Result<FeatureStore> twin = StoreOf(two, *seen);
      REQUIRE(store.ok());
      REQUIRE(twin.ok());
      REQUIRE(store->most_cache_rows() == kCached);
      uint64_t border = kCached;
      for (uint64_t version = 0; version < 20; ++version) {
        CheckRows(one, *store, border);
        CheckRows(two, *twin, border);
        StoreOnes(version % 2 == 0 ? &history : &other, version, 1 + dim / 3);
        REQUIRE(history.BringTo(version + 1, 1).ok());
        REQUIRE(other.BringTo(version + 1, 1).ok());
        border = history.features();
        CHECK(other.features() == border);
        store->set_border(border);
        twin->set_border(border);
      }
      CHECK(border < kCached);
    }
  }
}

TEST_CASE("a cache of other features than the history's is refused") {
  const Features f(8, 0);
  HistoryConfig config = f.Config();
  config.feature_bytes = 16;
  JobHistory history(config);
  CHECK(HistoryCache::Create(config, {}, f.table, f.order, &history).status().code() ==
        Code::kInvalidArgument);
  config = f.Config();
  CHECK(HistoryCache::Create(config, {}, f.table, std::span(f.order).first(10), &history)
            .status()
            .code() == Code::kInvalidArgument);
}

}  // namespace
}  // namespace gnnd
