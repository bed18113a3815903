#include "core/feature/footprint.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/feature/hot_order.h"
#include "core/feature/hotness.h"

namespace gnnd {
namespace {

std::vector<uint32_t> HottestTenth(std::span<const uint32_t> footprint) {
  std::vector<uint32_t> order = OrderByHotness(PresampledHotness(footprint, 1));
  order.resize(std::max<size_t>(1, order.size() / 10));
  return order;
}

}  // namespace

uint64_t HitsOf(std::span<const uint32_t> footprint, std::span<const uint32_t> order,
                uint64_t cache_rows) {
  GNND_CHECK(footprint.size() == order.size() && cache_rows <= order.size());
  uint64_t hits = 0;
  for (const uint32_t node : order.first(cache_rows)) hits += footprint[node];
  return hits;
}

double Similarity(std::span<const uint32_t> footprint_i, std::span<const uint32_t> footprint_j) {
  GNND_CHECK(!footprint_i.empty() && footprint_i.size() == footprint_j.size());
  std::vector<bool> in_i(footprint_i.size());
  for (const uint32_t node : HottestTenth(footprint_i)) in_i[node] = true;
  uint64_t common = 0;
  uint64_t all = 0;
  for (const uint32_t node : HottestTenth(footprint_j)) {
    all += footprint_j[node];
    if (in_i[node]) common += std::min(footprint_i[node], footprint_j[node]);
  }
  return all == 0 ? 0.0 : static_cast<double>(common) / static_cast<double>(all);
}

}  // namespace gnnd
