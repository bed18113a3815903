#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/base/prefetch.h"
#include "core/graph/topology_view.h"
#include "core/sample/picks.h"
#include "core/sample/times.h"
#include "core/sample/tree_relabel.h"

namespace gnnd {

// The rows of a group of destinations, as far as their trees see them: the edges are the `lengths`
// entries of the topology's indices from `starts` on.
struct SeenGroup {
  alignas(64) uint32_t nodes[kGroupRows];
  alignas(64) uint32_t trees[kGroupRows];
  uint64_t starts[kGroupRows];
  uint64_t lengths[kGroupRows];
};

// Finds what trees see of rows in order of time: a binary search for each end, in step for all rows
// of a group, so that the reads of one row do not wait for those of another.
class SeenRows {
 public:
  // `seen` has the range of each tree. Borrows all. `times` of a relation without times is empty.
  SeenRows(const TopologyView& topology, std::span<const int64_t> times,
           const TreeRelabel& destinations, std::span<const TimeRange> seen)
      : topology_(topology), times_(times), destinations_(destinations), seen_(seen) {}

  // Asks for the times that Find reads first of the rows from first_row on.
  GNND_PREFETCHES void Ask(PrefetchLevel level, const uint32_t* dst, uint32_t first_row,
                           uint32_t rows) const {
    constexpr uint64_t kTimesPerLine = 8;
    constexpr uint64_t kShort = 4 * kTimesPerLine;
    if (times_.empty()) return;
    for (uint32_t r = 0; r < rows; ++r) {
      const uint32_t node = dst[first_row + r];
      const uint64_t length = topology_.degree(node);
      const int64_t* times = times_.data() + topology_.indptr[node];
      if (length > kShort) Prefetch(level, times + length / 2);
      for (uint64_t e = 0; e < length && length <= kShort; e += kTimesPerLine) {
        Prefetch(level, times + e);
      }
    }
  }

  // Sets the first `rows` rows of `group` to those from first_row on.
  void Find(const uint32_t* dst, uint32_t first_row, uint32_t rows, SeenGroup* group) const {
    bool bounded = false;  // some tree does not see all the way back
    for (uint32_t r = 0; r < rows; ++r) {
      const uint32_t node = dst[first_row + r];
      group->nodes[r] = node;
      group->trees[r] = destinations_.tree(first_row + r);
      group->starts[r] = topology_.indptr[node];
      group->lengths[r] = topology_.degree(node);
      bounded |= seen_[group->trees[r]].first != std::numeric_limits<int64_t>::min();
    }
    if (times_.empty()) return;
    uint64_t ends[kGroupRows];
    uint64_t skipped[kGroupRows] = {};
    CountLeading(*group, rows, ends, [this, group](int64_t time, uint32_t r) {
      return time <= seen_[group->trees[r]].last;
    });
    if (bounded) {
      CountLeading(*group, rows, skipped, [this, group](int64_t time, uint32_t r) {
        return time < seen_[group->trees[r]].first;
      });
    }
    for (uint32_t r = 0; r < rows; ++r) {
      group->starts[r] += skipped[r];
      group->lengths[r] = std::max(ends[r], skipped[r]) - skipped[r];
    }
  }

 private:
  // counts[r] = number of entries at the begin of row r for whose time holds(time, r).
  template <typename Holds>
  void CountLeading(const SeenGroup& group, uint32_t rows, uint64_t* counts,
                    const Holds& holds) const {
    uint64_t left[kGroupRows];  // entries that are undecided
    uint64_t longest = 0;
    for (uint32_t r = 0; r < rows; ++r) {
      counts[r] = 0;
      left[r] = group.lengths[r];
      longest = std::max(longest, left[r]);
    }
    for (; longest > 0; longest /= 2) {
      for (uint32_t r = 0; r < rows; ++r) {
        if (left[r] == 0) continue;
        const uint64_t half = left[r] / 2;
        const bool beyond = holds(times_[group.starts[r] + counts[r] + half], r);
        counts[r] += beyond ? half + 1 : 0;
        left[r] = beyond ? left[r] - half - 1 : half;
      }
    }
  }

  const TopologyView& topology_;
  std::span<const int64_t> times_;
  const TreeRelabel& destinations_;
  std::span<const TimeRange> seen_;
};

}  // namespace gnnd
