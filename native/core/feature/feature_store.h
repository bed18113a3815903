#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/mapping.h"
#include "core/base/status.h"
#include "core/graph/row_table.h"

// The only door to a batch's input rows. A row lies in a tier: the device's cache, which holds the
// hottest rows, or behind it the whole table in the host's memory or on disk. Which tier a row
// comes from never changes its bits.

namespace gnnd {

// Starts reading the pages of rows of a mapped table, all at once: measured to be 2 to 4 times
// faster than to fault or to read (also past the page cache) row by row.
void AskForRows(const RowTable& table, std::span<const uint32_t> rows);

// Rows on disk are asked for this many at a time, one such part ahead of the one that is read: many
// reads are under way at once, and no more pages are wanted than a small host has.
inline constexpr uint64_t kRowsPerAsk = uint64_t{16} << 10;

// Calls ask(begin, end) and read(begin, end) for the parts of `rows` rows in order, each asked for
// before the one ahead of it is read.
template <typename Ask, typename Read>
void ReadInParts(uint64_t rows, const Ask& ask, const Read& read) {
  const auto end_of = [rows](uint64_t begin) { return std::min(begin + kRowsPerAsk, rows); };
  if (rows > 0) ask(0, end_of(0));
  for (uint64_t begin = 0; begin < rows; begin += kRowsPerAsk) {
    const uint64_t end = end_of(begin);
    if (end < rows) ask(end, end_of(end));
    read(begin, end);
  }
}

enum class Tier : uint32_t { kDevice = 0, kHost = 1, kDisk = 2 };
inline constexpr uint32_t kNumTiers = 3;

// What reading the rows of a batch moved, by tier. Each input node counts once.
struct TierTraffic {
  uint64_t rows[kNumTiers] = {};
  uint64_t bytes[kNumTiers] = {};
};

// A CPU device's store. Its cache is a private, dense copy of the hottest rows in rank order, in
// the element type of the table, on 2 MiB pages, in the same range of addresses as the mapped table
// and a whole number of rows away from it: one base and one 32-bit row number reach both, so that
// kernels which gather by row number read through the cache without knowing of it.
class FeatureStore {
 public:
  struct Options {
    RowTable features;  // a row a node, borrowed: must outlive the store
    // Node of each rank, needed while Create runs; cache_rows of them are cached.
    std::span<const uint32_t> order;
    uint64_t cache_rows = 0;
    // The table is larger than the host's memory: what misses the cache counts as read from disk,
    // and is to be asked for before it is read (Ask).
    bool on_disk = false;
  };

  FeatureStore() = default;

  // Fills the cache. kInvalidArgument when sizes contradict each other; kShmAllocationFailed when
  // there is no memory for the cache. Where no addresses within reach of the table are free, the
  // store works without a cache: cache_rows() is 0.
  static Result<FeatureStore> Create(const Options& options);

  uint64_t cache_rows() const { return cache_rows_; }
  uint64_t cache_bytes() const { return cache_rows_ * features_.row_bytes(); }

  // Rows of the cache and of the table behind it.
  const RowTable& table() const { return table_; }

  bool on_disk() const { return behind_ == Tier::kDisk; }

  // Row number within table() of each node, given its rank (or an empty `ranks`: all miss).
  // `scratch` has nodes.size() elements; the result is in it or is `nodes` itself.
  std::span<const uint32_t> Locate(std::span<const uint32_t> nodes, std::span<const uint32_t> ranks,
                                   uint32_t* scratch) const;

  // Starts reading those of these rows (numbers within table()) that are on disk.
  void Ask(std::span<const uint32_t> rows) const;

  // What reading these rows moves.
  TierTraffic TrafficOf(std::span<const uint32_t> nodes, std::span<const uint32_t> ranks) const;

 private:
  // Null when no addresses within reach of the table are free.
  Result<std::byte*> AllocateNearTable(uint64_t rows);

  RowTable features_;
  RowTable table_;
  uint64_t cache_rows_ = 0;
  uint32_t first_cached_ = 0;  // row number of rank 0
  uint32_t first_host_ = 0;    // row number of node 0
  Tier behind_ = Tier::kHost;
  Mapping memory_;
};

}  // namespace gnnd
