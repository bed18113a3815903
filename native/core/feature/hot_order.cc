#include "core/feature/hot_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "core/base/atomic_file.h"
#include "core/base/check.h"

namespace gnnd {

std::vector<uint32_t> OrderByHotness(std::span<const float> hotness) {
  // Floats that are not negative compare as their bits do; complemented, hot ones come first.
  std::vector<uint64_t> keys(hotness.size());
  for (size_t v = 0; v < hotness.size(); ++v) {
    GNND_CHECK(hotness[v] >= 0.0F && std::isfinite(hotness[v]));
    const uint32_t bits = std::bit_cast<uint32_t>(hotness[v] + 0.0F);  // -0 becomes 0
    keys[v] = uint64_t{~bits} << 32 | v;
  }
  std::sort(keys.begin(), keys.end());
  std::vector<uint32_t> order(hotness.size());
  for (size_t rank = 0; rank < order.size(); ++rank)
    order[rank] = static_cast<uint32_t>(keys[rank]);
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
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i + kAhead < nodes.size()) __builtin_prefetch(&ranks_[nodes[i + kAhead]]);
    out[i] = ranks_[nodes[i]];
  }
}

}  // namespace gnnd
