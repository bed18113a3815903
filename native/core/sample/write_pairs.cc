#include "core/sample/write_pairs.h"

#include <algorithm>
#include <cstdint>

#include "core/base/check.h"

namespace gnnd {

PairEntry WritePairs(const PairsView& pairs, const PairLayout& place, std::span<std::byte> slot) {
  PairEntry entry{};
  if (pairs.empty()) return entry;
  const auto write = [&slot](uint64_t at, std::span<const uint32_t> words) {
    GNND_CHECK(at != 0);
    std::copy(words.begin(), words.end(), reinterpret_cast<uint32_t*>(slot.data() + at));
    return at;
  };
  entry.num_pairs = pairs.size();
  entry.per_pair = pairs.per_pair;
  entry.in_batch = pairs.in_batch ? 1 : 0;
  entry.ends_at = write(place.ends_at, pairs.source);
  write(place.ends_at + pairs.source.size_bytes(), pairs.destination);
  entry.items_at = write(place.items_at, pairs.items);
  if (!pairs.in_batch && !pairs.negatives.empty()) {
    entry.negatives_at = write(place.negatives_at, pairs.negatives);
  }
  entry.num_masked = static_cast<uint32_t>(pairs.masked.size());
  if (!pairs.masked.empty()) entry.masked_at = write(place.masked_at, pairs.masked);
  return entry;
}

}  // namespace gnnd
