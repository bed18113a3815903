#include "core/feature/hot_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/base/atomic_file.h"
#include "core/base/check.h"
#include "core/base/prefetch.h"

namespace gnnd {

std::vector<uint32_t> OrderByHotness(std::span<const float> hotness) {
  // A radix sort, last digit first, stable: ties stay in the order of ids.
  constexpr uint32_t kDigitBits = 11;
  constexpr uint32_t kDigits = 3;
  constexpr uint32_t kMask = (1U << kDigitBits) - 1;
  std::vector<uint32_t> counts(kDigits << kDigitBits);
  std::vector<uint64_t> from(hotness.size());  // key, id
  for (size_t v = 0; v < hotness.size(); ++v) {
    GNND_CHECK(hotness[v] >= 0.0F && std::isfinite(hotness[v]));
    // Non-negative floats compare like their bits; the complement puts hot nodes first.
    const uint32_t key = ~std::bit_cast<uint32_t>(hotness[v] + 0.0F);  // -0 becomes 0
    from[v] = uint64_t{key} << 32 | v;
    for (uint32_t d = 0; d < kDigits; ++d) {
      ++counts[(d << kDigitBits) + (key >> d * kDigitBits & kMask)];
    }
  }
  std::vector<uint64_t> to(hotness.size());
  for (uint32_t d = 0; d < kDigits; ++d) {
    uint32_t* const next = counts.data() + (d << kDigitBits);
    // Skips a digit that all keys share, such as the low bits of counts.
    if (std::find(next, next + kMask + 1, from.size()) != next + kMask + 1) continue;
    std::exclusive_scan(next, next + kMask + 1, next, 0U);
    for (const uint64_t entry : from) to[next[entry >> (32 + d * kDigitBits) & kMask]++] = entry;
    std::swap(from, to);
  }
  std::vector<uint32_t> order(hotness.size());
  std::transform(from.begin(), from.end(), order.begin(),
                 [](uint64_t entry) { return static_cast<uint32_t>(entry); });
  return order;
}

uint64_t CacheRows(double alpha, uint32_t num_nodes) {
  GNND_CHECK(alpha >= 0.0 && alpha <= 1.0);
  return static_cast<uint64_t>(std::floor(alpha * num_nodes));
}

Status WriteHotOrder(std::span<const uint32_t> order, const std::string& path) {
  std::vector<uint32_t> ranks(order.size());
  for (size_t rank = 0; rank < order.size(); ++rank) {
    ranks[order[rank]] = static_cast<uint32_t>(rank);
  }
  AtomicFile file(path);
  GNND_TRY(file.Create());
  const std::string header =
      NpyHeader(NpyType::kUint32, std::array<uint64_t, 2>{2, uint64_t{order.size()}});
  GNND_TRY(file.Write(std::as_bytes(std::span(header.data(), header.size()))));
  GNND_TRY(file.Write(std::as_bytes(order)));
  GNND_TRY(file.Write(std::as_bytes(std::span<const uint32_t>(ranks))));
  return file.Commit();
}

Result<HotOrder> HotOrder::Open(const std::string& path, uint32_t num_nodes) {
  NpyArray array = GNND_VALUE(NpyArray::Open(path));
  GNND_TRY(array.Expect({NpyType::kUint32}, {2, num_nodes}));
  HotOrder order;
  order.array_ = std::move(array);
  order.num_nodes_ = num_nodes;
  return order;
}

RankTable::RankTable(std::span<const uint32_t> ranks, uint64_t largest_cache)
    : ranks_(ranks.size()) {
  for (size_t v = 0; v < ranks.size(); ++v) {
    ranks_[v] = ranks[v] < largest_cache ? ranks[v] : kNoRank;
  }
}

void RankTable::Mark(std::span<const uint32_t> nodes, uint32_t* out) const {
  constexpr size_t kAhead = 24;
  const PrefetchLevel level = BestPrefetchLevel();
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i + kAhead < nodes.size()) Prefetch(level, &ranks_[nodes[i + kAhead]]);
    out[i] = ranks_[nodes[i]];
  }
}

}  // namespace gnnd
