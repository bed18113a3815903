#include "core/feature/history_cache.h"

#include <numeric>
#include <string>
#include <utility>

#include "core/feature/feature_store.h"
#include "core/graph/features.h"

namespace gnnd {

Result<HistoryCache> HistoryCache::Create(const HistoryConfig& config, const HistoryFile& file,
                                          const RowTable& features, std::span<const uint32_t> order,
                                          JobHistory* history) {
  if (config.feature_bytes != features.row_bytes() || config.cache_rows > order.size() ||
      features.num_rows() != config.num_nodes) {
    return Status(Code::kInvalidArgument, "history: a cache of " +
                                              std::to_string(config.cache_rows) + " rows of " +
                                              std::to_string(config.feature_bytes) + " bytes for " +
                                              std::to_string(order.size()) + " ranks and rows of " +
                                              std::to_string(features.row_bytes()));
  }
  HistoryCache cache;
  uint64_t skew = 0;
  if (file.fd < 0) {
    std::byte* const begin = history->features_at(0);
    skew = BytesToRows(begin, features);
    cache.rows_ = begin + skew;
  } else {
    // The row of rank 0 has one offset in the file for all who map it, and a mapping can move by
    // whole pages only. So the offset within a page equals the table's, modulo the greatest common
    // divisor of row and page.
    const auto table = reinterpret_cast<uintptr_t>(features.row(0));
    const uint64_t row_bytes = features.row_bytes();
    skew = table % std::gcd(row_bytes, kPageBytes);
    const uint64_t bytes = JobHistory::FeaturesBytes(config);
    cache.seen_ =
        GNND_VALUE(Mapping::Stretch(file.fd, file.offset + JobHistory::FeaturesAt(config), bytes,
                                    {row_bytes, (table % row_bytes + row_bytes - skew) % row_bytes,
                                     AddressesNear(features, bytes)}));
    cache.rows_ = cache.seen_.data() + skew;
  }
  GNND_TRY(history->FillFeatures(skew, [&](uint64_t begin, uint64_t end, std::byte* to) {
    CopyRows(features, order.subspan(begin, end - begin), to);
  }));
  return cache;
}

}  // namespace gnnd
