#pragma once

#include <cstdint>

#include "core/base/huge_array.h"
#include "core/base/prefetch.h"

// Maps global ids to batch-local ones, in order of first occurrence. Two tables give one result.
//
// Nothing is cleared between batches: an entry holds base + local id, it is valid iff entry - base
// is below the number of nodes so far (unsigned), and base moves past a batch's ids when it ends.
// So every older entry, and 0, is invalid; only when base nears 2^32 is the table zeroed.

namespace gnnd {

inline constexpr uint64_t kTagEnd = uint64_t{1} << 32;

// One entry per node of the graph. The fastest table while it fits the caches.
class DenseRelabel {
 public:
  // `first_base` >= 1 lets a test start near the end of the tags.
  explicit DenseRelabel(uint32_t num_nodes, uint32_t first_base = 1)
      : entries_(num_nodes), base_(first_base) {}

  // Starts a batch of at most `max_nodes` distinct ids.
  void Begin(uint32_t max_nodes);
  void End(uint32_t count) { base_ += count; }

  GNND_PREFETCHES void Ask(PrefetchLevel level, uint32_t id) const {
    Prefetch(level, entries_.data() + id);
  }

  // Maps `size` ids to local_ids and appends unseen ones to nodes[0 .. count), which needs room for
  // one more than it will hold. Returns the new count.
  uint32_t InsertAll(const uint32_t* ids, uint32_t size, uint32_t* nodes, uint32_t count,
                     uint32_t* local_ids);

  uint64_t bytes() const { return entries_.size() * sizeof(uint32_t); }

 private:
  HugeArray<uint32_t> entries_;
  uint64_t base_;  // base_ + count of the running batch <= kTagEnd
};

// Open addressing, sized by the batches so far, for graphs whose dense table would be too large.
class HashRelabel {
 public:
  explicit HashRelabel(uint32_t max_nodes, uint32_t first_base = 1);

  void Begin(uint32_t max_nodes);
  void End(uint32_t count) { base_ += count; }

  GNND_PREFETCHES void Ask(PrefetchLevel level, uint32_t id) const {
    Prefetch(level, entries_.data() + Slot(id));
  }

  uint32_t InsertAll(const uint32_t* ids, uint32_t size, uint32_t* nodes, uint32_t count,
                     uint32_t* local_ids);

  uint64_t bytes() const { return capacity_ * sizeof(Entry); }

 private:
  struct Entry {
    uint32_t id;
    uint32_t tag;
  };

  uint64_t Slot(uint32_t id) const {
    constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
    return (id * kGolden) >> shift_;
  }
  void SetCapacity(uint64_t capacity);
  void Grow(uint32_t* nodes, uint32_t count);
  uint32_t Insert(const uint32_t* ids, uint32_t size, uint32_t* nodes, uint32_t count,
                  uint32_t* local_ids);

  HugeArray<Entry> entries_;  // reserved for the largest batch, used up to capacity_
  uint64_t capacity_ = 0;     // a power of two, at least twice the ids in the table
  uint32_t shift_ = 0;
  uint64_t base_;
  uint32_t max_nodes_;
};

}  // namespace gnnd
