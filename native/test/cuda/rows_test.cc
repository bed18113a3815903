#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "core/base/half.h"
#include "core/feature/hot_order.h"
#include "core/kernels/row_tiers.h"
#include "core/vec/convert.h"
#include "cuda/operators.h"
#include "test/cuda/orders.h"
#include "test/support/graphs.h"

// Ranks, and rows from where they lie into a batch's matrix.

namespace gnnd {
namespace {

constexpr uint32_t kNodes = 700;

std::vector<std::byte> RandomBytes(uint64_t seed, uint64_t count) {
  std::mt19937_64 generator(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(generator());
  return bytes;
}

cuda::RowSource RowsByNode(const void* table, const uint32_t* nodes) {
  cuda::RowSource source;
  source.nodes = nodes;
  source.tiers.by_node = table;
  return source;
}

// A batch whose rows lie in a cache and in a table.
struct Batch {
  std::vector<uint32_t> order = test::RandomNodes(1, kNodes, kNodes);
  std::vector<uint32_t> rank_of = std::vector<uint32_t>(kNodes);
  std::vector<uint32_t> nodes;
  std::vector<uint32_t> ranks;
  uint32_t cache_rows;

  Batch(uint32_t count, uint32_t cached) : cache_rows(cached) {
    for (uint32_t rank = 0; rank < kNodes; ++rank) rank_of[order[rank]] = rank;
    nodes = test::RandomNodes(2, kNodes, count);
    ranks.assign(count, 0xA5A5A5A5);
  }
  void Mark(uint32_t largest_cache) {
    const auto count = static_cast<uint32_t>(nodes.size());
    const uint32_t half = count / 2;
    cuda::MarkHotRanks({nullptr, 2}, rank_of.data(), largest_cache, nodes.data(), 0, half,
                       ranks.data());
    cuda::MarkHotRanks({nullptr, 2}, rank_of.data(), largest_cache, nodes.data(), half,
                       count - half, ranks.data());
  }
  cuda::RowSource Source(const void* cache, const void* table) const {
    cuda::RowSource source = RowsByNode(table, nodes.data());
    source.ranks = ranks.data();
    AddPrefix(&source.tiers, cache_rows, cache);
    return source;
  }
};

}  // namespace

TEST_CASE("hot ranks of a device are the processor's") {
  for (const uint32_t count : {0U, 1U, 32U, 257U, kNodes}) {
    for (const uint32_t largest : {0U, 1U, 300U, kNodes}) {
      test::InOrders([&](uint32_t) {
        Batch batch(count, largest);
        std::vector<uint32_t> wanted(count);
        RankTable(batch.rank_of, largest).Mark(batch.nodes, wanted.data());
        batch.Mark(largest);
        CHECK(batch.ranks == wanted);
      });
    }
  }
}

TEST_CASE("rows come from the cache or from the table, whatever their length and place") {
  for (const uint64_t row_bytes : {2U, 4U, 6U, 16U, 36U, 400U, 512U}) {
    const std::vector<std::byte> table = RandomBytes(row_bytes, kNodes * row_bytes);
    for (const uint32_t cached : {0U, 200U, kNodes}) {
      test::InOrders([&](uint32_t order) {
        Batch batch(1 + 83 * order, cached);
        batch.Mark(cached);
        const cuda::Queue queue{nullptr, 1 + order};
        // The cache is rows in the order of hotness, made by the same operator.
        std::vector<std::byte> cache(cached * row_bytes);
        cuda::CopyRows(queue, RowsByNode(table.data(), batch.order.data()), 0, cached, row_bytes,
                       cache.data());
        for (uint32_t rank = 0; rank < cached; ++rank) {
          REQUIRE(std::memcmp(cache.data() + rank * row_bytes,
                              table.data() + batch.order[rank] * row_bytes, row_bytes) == 0);
        }
        std::vector<std::byte> out(batch.nodes.size() * row_bytes);
        cuda::CopyRows(queue, batch.Source(cache.data(), table.data()), 0, batch.nodes.size(),
                       row_bytes, out.data());
        for (size_t i = 0; i < batch.nodes.size(); ++i) {
          CHECK(std::memcmp(out.data() + i * row_bytes, table.data() + batch.nodes[i] * row_bytes,
                            row_bytes) == 0);
        }
      });
    }
  }
}

TEST_CASE("rows beyond 2^31 words are found") {
  // Row numbers around the border, of one place each: all that is read lies behind the pointers.
  constexpr uint64_t kFirst = (uint64_t{1} << 31) - 5;
  constexpr uint64_t kRow = 16;
  const std::vector<std::byte> table = RandomBytes(3, kNodes * kRow);
  const std::vector<uint32_t> nodes = test::RandomNodes(4, kNodes, 10);
  std::vector<std::byte> out(10 * kRow);
  const auto before = [](auto* at, uint64_t bytes) {
    return reinterpret_cast<decltype(at)>(reinterpret_cast<uintptr_t>(at) - bytes);
  };
  cuda::CopyRows({nullptr, 1},
                 RowsByNode(table.data(), before(nodes.data(), kFirst * sizeof(uint32_t))), kFirst,
                 10, kRow, before(out.data(), kFirst * kRow));
  for (size_t i = 0; i < 10; ++i) {
    CHECK(std::memcmp(out.data() + i * kRow, table.data() + nodes[i] * kRow, kRow) == 0);
  }
}

TEST_CASE("misses that a device cannot read are scattered") {
  constexpr uint64_t kRow = 36;
  const std::vector<std::byte> table = RandomBytes(5, kNodes * kRow);
  for (const uint32_t count : {0U, 1U, 33U, 600U}) {
    for (const uint32_t cached : {0U, 150U, kNodes}) {
      test::InOrders([&](uint32_t order) {
        Batch batch(count, cached);
        batch.Mark(cached);
        const cuda::Queue queue{nullptr, 1 + order};
        std::vector<std::byte> cache(cached * kRow);
        cuda::CopyRows(queue, RowsByNode(table.data(), batch.order.data()), 0, cached, kRow,
                       cache.data());
        const cuda::RowSource source = batch.Source(cache.data(), nullptr);
        std::vector<uint32_t> places;
        for (uint32_t i = 0; i < count; ++i) {
          if (batch.ranks[i] >= cached) places.push_back(i);
        }
        const auto num_misses = static_cast<uint32_t>(places.size());
        std::vector<std::byte> staged(num_misses * kRow);
        for (uint32_t m = 0; m < num_misses; ++m) {
          std::memcpy(staged.data() + m * kRow, table.data() + batch.nodes[places[m]] * kRow, kRow);
        }
        std::vector<std::byte> out(count * kRow);
        cuda::CopyRows(queue, source, 0, count, kRow, out.data());
        cuda::ScatterRows(queue, staged.data(), places.data(), num_misses, kRow, out.data());
        // The same into rows that lie further apart.
        constexpr uint64_t kStride = kRow + 4;
        std::vector<std::byte> apart(count * kStride);
        cuda::CopyRows(queue, source, 0, count, kRow, apart.data(), kStride);
        cuda::ScatterRows(queue, staged.data(), places.data(), num_misses, kRow, apart.data(),
                          kStride);
        for (size_t i = 0; i < count; ++i) {
          const std::byte* const wanted = table.data() + batch.nodes[i] * kRow;
          CHECK(std::memcmp(out.data() + i * kRow, wanted, kRow) == 0);
          CHECK(std::memcmp(apart.data() + i * kStride, wanted, kRow) == 0);
        }
      });
    }
  }
}

TEST_CASE("rows are widened and narrowed as the processor does") {
  constexpr uint32_t kDim = 11;
  const auto count = static_cast<uint32_t>(kNodes);
  const std::vector<std::byte> halves = RandomBytes(6, uint64_t{kNodes} * kDim * sizeof(Half));
  const auto* const half = reinterpret_cast<const Half*>(halves.data());
  const std::vector<std::byte> floats = RandomBytes(7, uint64_t{kNodes} * kDim * sizeof(float));
  const auto* const full = reinterpret_cast<const float*>(floats.data());
  std::vector<uint32_t> nodes(count);
  for (uint32_t v = 0; v < count; ++v) nodes[v] = v;
  constexpr uint64_t kElements = uint64_t{kNodes} * kDim;
  std::vector<float> wide(kElements);
  std::vector<Bfloat16> narrow(kElements);
  std::vector<float> wide_twin(kElements);
  std::vector<Bfloat16> narrow_twin(kElements);
  const auto same = [](const auto& a, const auto& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
  };
  const cuda::Queue queue{nullptr, 3};
  using cuda::RowType;
  const cuda::RowSource from_half = RowsByNode(half, nodes.data());
  cuda::ConvertRows(queue, from_half, count, kDim, RowType::kFloat16, RowType::kFloat32,
                    wide.data());
  Convert(half, kElements, wide_twin.data());
  CHECK(same(wide, wide_twin));
  cuda::ConvertRows(queue, from_half, count, kDim, RowType::kFloat16, RowType::kBfloat16,
                    narrow.data());
  Convert(half, kElements, narrow_twin.data());
  CHECK(same(narrow, narrow_twin));
  const cuda::RowSource from_full = RowsByNode(full, nodes.data());
  cuda::ConvertRows(queue, from_full, count, kDim, RowType::kFloat32, RowType::kBfloat16,
                    narrow.data());
  Convert(full, kElements, narrow_twin.data());
  CHECK(same(narrow, narrow_twin));
  cuda::ConvertRows(queue, from_full, count, kDim, RowType::kFloat32, RowType::kFloat32,
                    wide.data());
  CHECK(std::memcmp(wide.data(), full, kElements * sizeof(float)) == 0);
}

}  // namespace gnnd
