#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/mapping.h"
#include "core/base/status.h"
#include "core/graph/row_table.h"

// The only door to a batch's input rows. A row lies in a tier: the device's cache, which holds the
// hottest rows, or behind it the whole table in the host's memory or on disk. The tier that a row
// comes from never changes its bits. Rows in device memory that the processor cannot read are found
// by a kernel (row_placement.h); a store then serves the rows that the host brings.

namespace gnnd {

// Starts reading the pages of rows of a mapped table, all at once: measured to be 2 to 4 times
// faster than to fault or to read (also past the page cache) row by row.
void AskForRows(const RowTable& table, std::span<const uint32_t> rows);

// Rows on disk are requested in parts of this many, one part ahead of the one being read: many
// reads are under way at once, and no more pages are needed than a small host has.
inline constexpr uint64_t kRowsPerAsk = uint64_t{16} << 10;

// Calls ask(begin, end) and read(begin, end) for the parts of `rows` rows in order; each part is
// requested before the part ahead of it is read.
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

enum class Tier : uint32_t { kDevice = 0, kPeer = 1, kHost = 2, kDisk = 3 };
inline constexpr uint32_t kNumTiers = 4;

// Rows and bytes that the reads of a batch moved, by tier. Each input node counts once.
struct TierTraffic {
  uint64_t rows[kNumTiers] = {};
  uint64_t bytes[kNumTiers] = {};
};

// A tier of a store: rows that lie together. The node's hot rank alone decides the tier of its row,
// so that a device can compute it by itself.
struct TierRows {
  Tier kind = Tier::kHost;
  RowTable rows;          // in this process's memory
  uint64_t end_rank = 0;  // holds the rows of ranks below, except those that an earlier tier has
  bool by_rank = true;    // a row's number is its node's rank; otherwise the node id
  uint32_t first = 0;     // in a flat store: the number of this tier's row 0 within table()
};

// The place of a row: tiers()[tier].rows.row(row).
struct RowPlace {
  uint32_t tier = 0;
  uint32_t row = 0;
  bool operator==(const RowPlace&) const = default;
};

// An address for Reserve::near just below a table, where the kernel puts the next mapping anyway.
uintptr_t AddressesNear(const RowTable& table, uint64_t bytes);

// Bytes from `begin` to the next address that is a whole number of rows away from the table.
uint64_t BytesToRows(const std::byte* begin, const RowTable& table);

// The tiers of one Trainer's features, the fastest first; the last one has every node's row.
//
// On a CPU device there are two, and the store is *flat*: its cache is a private, dense copy of the
// hottest rows in rank order, in the element type of the table, on 2 MiB pages, in the same range
// of addresses as the mapped table and a whole number of rows away from it. So one 32-bit row
// number reaches both, and kernels which gather by row number read through the cache without
// knowing of it. Where there are more tiers, rows are read tier by tier (Read).
class FeatureStore {
 public:
  struct Options {
    RowTable features;  // a row a node, borrowed: must outlive the store
                        // cache_rows of them are cached
    std::span<const uint32_t> order;
    uint64_t cache_rows = 0;
    // The table is larger than the host's memory: cache misses count as read from disk, and are to
    // be requested before they are read (Ask).
    bool on_disk = false;
    // Rows of the first ranks in the host's memory (host_tier.h), borrowed likewise; may be empty.
    // Records must carry the ranks of these rows.
    RowTable host{};
    // Address of the cached rows if they lie in a history's memory (history_cache.h), a whole
    // number of rows away from the table, and filled already; null: Create makes and fills a cache.
    const std::byte* lent = nullptr;
  };

  FeatureStore() = default;

  // Fills the cache. kInvalidArgument when sizes contradict each other; kShmAllocationFailed when
  // there is no memory for the cache. If no addresses within reach of the table are free, the store
  // works without a cache: cache_rows() is 0.
  static Result<FeatureStore> Create(const Options& options);

  std::span<const TierRows> tiers() const { return {tiers_, num_tiers_}; }

  // The place of a node's row, given the node's rank; kNoRank if it is unknown.
  RowPlace PlaceOf(uint32_t node, uint32_t rank) const {
    uint32_t tier = 0;
    while (tier + 1 < num_tiers_ && rank >= tiers_[tier].end_rank) ++tier;
    return {tier, tiers_[tier].by_rank ? rank : node};
  }

  uint64_t cache_rows() const { return cache_rows_; }
  // cache_rows() before set_border was called.
  uint64_t most_cache_rows() const { return most_cache_rows_; }
  // From the next read on, rows of `rank` and higher ranks come from behind the cache, whatever the
  // cache holds. REQUIRES: a flat store.
  void set_border(uint64_t rank);
  uint64_t cache_bytes() const { return cache_rows_ * features_.row_bytes(); }
  bool on_disk() const { return num_tiers_ > 0 && tiers_[num_tiers_ - 1].kind == Tier::kDisk; }

  // ---- a flat store -------------------------------------------------------------------------

  bool flat() const { return flat_; }
  // The rows of all tiers as one table. REQUIRES: flat().
  const RowTable& table() const { return table_; }

  // Row number within table() of each node, given its rank (or an empty `ranks`: all miss).
  // `scratch` has nodes.size() elements; the result is in it or is `nodes` itself.
  // REQUIRES: flat().
  std::span<const uint32_t> Locate(std::span<const uint32_t> nodes, std::span<const uint32_t> ranks,
                                   uint32_t* scratch) const;

  // Starts reading those of these rows (numbers within table()) that are on disk.
  void Ask(std::span<const uint32_t> rows) const;

  // ---- any store ----------------------------------------------------------------------------

  // Starts reading those nodes' rows that are on disk.
  void Ask(std::span<const uint32_t> nodes, std::span<const uint32_t> ranks) const;
  // Reads the nodes' rows, in the table's own type, to `out`, tier by tier.
  void Read(std::span<const uint32_t> nodes, std::span<const uint32_t> ranks, std::byte* out) const;

  // The traffic of reading these rows.
  TierTraffic TrafficOf(std::span<const uint32_t> nodes, std::span<const uint32_t> ranks) const;

 private:
  static constexpr uint32_t kMostTiers = 3;

  // Null when no addresses within reach of the table are free.
  Result<std::byte*> AllocateNearTable(uint64_t rows);
  // Sets up row numbers for cache and table; false if they are out of each other's reach.
  bool Reach(const std::byte* cache, uint64_t rows);
  void AddTier(const TierRows& tier) { tiers_[num_tiers_++] = tier; }

  RowTable features_;
  RowTable table_;
  TierRows tiers_[kMostTiers];
  uint32_t num_tiers_ = 0;
  bool flat_ = true;
  uint64_t most_cache_rows_ = 0;
  uint64_t cache_rows_ = 0;    // the border: rows of lower ranks are read from the cache
  uint32_t first_cached_ = 0;  // row number of rank 0
  uint32_t first_host_ = 0;    // row number of node 0
  Mapping memory_;
};

}  // namespace gnnd
