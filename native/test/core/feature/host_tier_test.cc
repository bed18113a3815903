#include "core/feature/host_tier.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/huge_array.h"
#include "core/feature/feature_store.h"
#include "core/feature/hot_order.h"
#include "test/support/fake_registrar.h"
#include "test/support/graphs.h"
#include "test/support/halves.h"

namespace gnnd {
namespace {

constexpr uint32_t kNodes = 300;

// Features, their order, and a tier of the first rows.
struct Fixture {
  Fixture(uint64_t dim, uint64_t rows)
      : halves(test::RandomHalves(kNodes * dim, 5)),
        mapped(halves.size() * sizeof(Half)),
        order(test::RandomNodes(6, kNodes, kNodes)),
        rank_of(kNodes) {
    std::memcpy(mapped.data(), halves.data(), mapped.size());
    table = RowTable(FeatureType::kFloat16, {mapped.data(), mapped.size()}, dim);
    for (uint32_t rank = 0; rank < kNodes; ++rank) rank_of[order[rank]] = rank;
    fd = std::move(*ReserveHostTier());
    REQUIRE(FillHostTier(fd.get(), {table, order, rows}).ok());
  }

  std::vector<Half> halves;
  HugeArray<std::byte> mapped;
  RowTable table;
  std::vector<uint32_t> order;
  std::vector<uint32_t> rank_of;
  UniqueFd fd;
};

TEST_CASE("a host tier has the hottest rows in rank order, and an account") {
  for (const uint64_t dim : {1U, 33U, 100U}) {
    const Fixture f(dim, 90);
    const Result<HostTier> tier = HostTier::Attach(f.fd.get(), f.table);
    REQUIRE_MESSAGE(tier.ok(), tier.status().message());
    REQUIRE(tier->rows().num_rows() == 90);
    for (uint32_t rank = 0; rank < 90; ++rank) {
      CHECK(std::memcmp(tier->rows().row(rank), f.table.row(f.order[rank]), f.table.row_bytes()) ==
            0);
    }
    CHECK(tier->bytes() == RoundUp(kPageBytes + 90 * f.table.row_bytes(), kPageBytes));
    CHECK(tier->registered_bytes() == 0);
    CHECK(tier->seen() == nullptr);
  }
}

TEST_CASE("a tier takes the rows that its budget holds, whole pages counted") {
  const Fixture f(100, 0);
  const uint64_t row_bytes = f.table.row_bytes();
  CHECK(HostTierRows(0, row_bytes, kNodes) == 0);
  CHECK(HostTierRows(kPageBytes, row_bytes, kNodes) == 0);
  CHECK(HostTierRows(3 * kPageBytes - 1, row_bytes, kNodes) == kPageBytes / row_bytes);
  CHECK(HostTierRows(uint64_t{1} << 40, row_bytes, kNodes) == kNodes);
  for (const uint64_t budget : {2 * kPageBytes, 5 * kPageBytes + 7, 9 * kPageBytes}) {
    UniqueFd fd = std::move(*ReserveHostTier());
    const uint64_t rows = HostTierRows(budget, row_bytes, kNodes);
    REQUIRE(FillHostTier(fd.get(), {f.table, f.order, rows}).ok());
    const Result<HostTier> tier = HostTier::Attach(fd.get(), f.table);
    REQUIRE(tier.ok());
    CHECK(tier->bytes() <= budget);
    CHECK(tier->bytes() + row_bytes > budget / kPageBytes * kPageBytes);
  }
}

TEST_CASE("a tier is registered while it may be written, and protected then") {
  const Fixture f(100, 200);
  test::FakeRegistrar device;
  const Registrar hook = device.hook();
  {
    const Result<HostTier> tier = HostTier::Attach(f.fd.get(), f.table, &hook);
    REQUIRE(tier.ok());
    CHECK(tier->registration_status().ok());
    CHECK(tier->registered_bytes() == tier->bytes());
    CHECK(device.bytes() == tier->bytes());
    CHECK_FALSE(test::IsWritable(tier->rows().row(0)));
    CHECK(device.Sees(tier->rows().row(3)) == *tier->rows().row(3));
    CHECK(tier->seen() == device.SeenAt(const_cast<std::byte*>(tier->rows().row(0))));
  }
  CHECK(device.ranges.empty());
  device.refuses_after = 0;
  const Result<HostTier> tier = HostTier::Attach(f.fd.get(), f.table, &hook);
  REQUIRE(tier.ok());
  CHECK(tier->registered_bytes() == 0);
  CHECK_FALSE(tier->registration_status().ok());
  CHECK_FALSE(test::IsWritable(tier->rows().row(0)));
}

TEST_CASE("what is no tier of these features is refused") {
  const Fixture f(100, 50);
  const Fixture other(99, 50);
  const auto refused = [](int fd, const RowTable& features) {
    return HostTier::Attach(fd, features).status().code();
  };
  CHECK(refused(f.fd.get(), other.table) == Code::kShmCorrupted);
  CHECK(refused(ReserveHostTier()->get(), f.table) == Code::kShmCorrupted);
  CHECK(refused(CreateMemfd("gnnd-test", 2 * kPageBytes)->get(), f.table) == Code::kShmCorrupted);
  // One that says it has more rows than it is large.
  const uint64_t rows = uint64_t{1} << 60;
  REQUIRE(pwrite(f.fd.get(), &rows, sizeof rows, offsetof(HostTierHeader, rows)) == sizeof rows);
  CHECK(refused(f.fd.get(), f.table) == Code::kShmCorrupted);
  UniqueFd fd = std::move(*ReserveHostTier());
  CHECK(FillHostTier(fd.get(), {f.table, f.order, kNodes + 1}).code() == Code::kInvalidArgument);
  const std::vector<uint32_t> beyond{kNodes};
  CHECK(FillHostTier(fd.get(), {f.table, beyond, 1}).code() == Code::kInvalidArgument);
}

TEST_CASE("a store says in which tier a row lies, and reads the same bits from any") {
  const Fixture f(33, 120);
  const Result<HostTier> tier = HostTier::Attach(f.fd.get(), f.table);
  REQUIRE(tier.ok());
  const std::vector<uint32_t> nodes = test::RandomNodes(9, kNodes, 250);
  std::vector<uint32_t> ranks(nodes.size());
  RankTable(f.rank_of, 200).Mark(nodes, ranks.data());
  const uint64_t row_bytes = f.table.row_bytes();
  for (const uint64_t cache_rows : {0U, 40U, 120U, 150U}) {
    for (const bool on_disk : {false, true}) {
      CAPTURE(cache_rows);
      FeatureStore::Options options{f.table, f.order, cache_rows, on_disk, tier->rows()};
      const Result<FeatureStore> store = FeatureStore::Create(options);
      REQUIRE_MESSAGE(store.ok(), store.status().message());
      REQUIRE(store->cache_rows() == cache_rows);
      // A tier that the cache holds wholly is none.
      const bool has_tier = cache_rows < 120;
      CHECK(store->flat() == !has_tier);
      CHECK(store->tiers().size() == 1U + (cache_rows > 0 ? 1 : 0) + (has_tier ? 1 : 0));
      uint64_t expected[kNumTiers] = {};
      for (size_t i = 0; i < nodes.size(); ++i) {
        const RowPlace place = store->PlaceOf(nodes[i], ranks[i]);
        const TierRows& found = store->tiers()[place.tier];
        CHECK(std::memcmp(found.rows.row(place.row), f.table.row(nodes[i]), row_bytes) == 0);
        const bool cached = ranks[i] < cache_rows;
        const bool in_tier = !cached && has_tier && ranks[i] < 120;
        const Tier last = on_disk ? Tier::kDisk : Tier::kHost;
        CHECK(found.kind == (cached ? Tier::kDevice : in_tier ? Tier::kHost : last));
        if (in_tier) CHECK(found.rows.row(0) == tier->rows().row(0));
        ++expected[static_cast<uint32_t>(found.kind)];
      }
      for (const bool marked : {true, false}) {
        std::vector<std::byte> out(nodes.size() * row_bytes);
        const std::span<const uint32_t> given = marked ? ranks : std::span<const uint32_t>();
        store->Ask(nodes, given);
        store->Read(nodes, given, out.data());
        for (size_t i = 0; i < nodes.size(); ++i) {
          CHECK(std::memcmp(out.data() + i * row_bytes, f.table.row(nodes[i]), row_bytes) == 0);
        }
      }
      const TierTraffic traffic = store->TrafficOf(nodes, ranks);
      for (uint32_t kind = 0; kind < kNumTiers; ++kind) {
        CHECK(traffic.rows[kind] == expected[kind]);
        CHECK(traffic.bytes[kind] == expected[kind] * row_bytes);
      }
    }
  }
}

}  // namespace
}  // namespace gnnd
