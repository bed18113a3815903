#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/prefetch.h"
#include "core/sample/expand.h"
#include "core/sample/labor.h"

namespace gnnd {

// Expands one hop by LABOR. Rows are read whole: each chunk of a row is prefetched some rows, or
// one chunk, before it is read. Taken ids wait in a chunk of their own between the prefetch of
// their table entries and their use.
template <typename Table>
class LaborHop {
 public:
  LaborHop(const TopologyView& topology, Table* table, ExpandBuffers* buffers,
           const LaborLoops& loops, const LaborKeys& keys, uint32_t fanout, HopTask* task)
      : topology_(topology),
        level_(buffers->level),
        ids_(table, buffers, task),
        loops_(loops),
        keys_(keys),
        fanout_(fanout),
        task_(task) {}

  void Run() {
    uint32_t edges = task_->num_edges;  // edges taken so far
    for (uint32_t row = task_->first_row; row < task_->num_dst; ++row) {
      PrefetchRowsAhead(level_, topology_, *task_, row);
      const uint64_t begin = topology_.indptr[task_->dst[row]];
      const uint64_t degree = topology_.indptr[task_->dst[row] + 1] - begin;
      const uint64_t there = degree - task_->skips.Absent(row);
      const uint32_t taken = TakeRow(topology_.indices.data() + begin, degree, row);
      std::fill_n(task_->weight + edges, taken, LaborWeight(fanout_, there));
      edges += taken;
      task_->indptr[row + 1] = edges;
    }
    ids_.Finish();
  }

 private:
  static constexpr uint32_t kChunkIds = ExpandBuffers::kChunkIds;
  static constexpr uint64_t kIdsPerLine = 16;
  static_assert(kChunkIds + kLaborSlack <= ExpandBuffers::kMaxGroupEdges);

  // Returns the number of neighbours that the row takes.
  uint32_t TakeRow(const uint32_t* ids, uint64_t degree, uint32_t row) {
    const uint64_t there = degree - task_->skips.Absent(row);
    const bool all = there <= fanout_;
    const uint32_t threshold = all ? 0 : LaborThreshold(fanout_, there);
    if (row >= task_->skips.num_rows()) return TakeStretch(ids, degree, threshold, 0);
    uint32_t taken = 0;
    uint64_t from = 0;
    for (const uint64_t place : task_->skips.of(row)) {
      taken = TakeStretch(ids + from, place - from, threshold, taken);
      from = place + 1;
    }
    return TakeStretch(ids + from, degree - from, threshold, taken);
  }

  // Takes some of consecutive neighbours of a row that has taken `taken` already, with a threshold
  // of 0 all of them. Returns how many the row has taken then.
  uint32_t TakeStretch(const uint32_t* ids, uint64_t length, uint32_t threshold, uint32_t taken) {
    const uint32_t most = MaxLaborRow(fanout_);
    const bool all = threshold == 0;
    for (uint64_t from = 0; from < length && taken < most; from += kChunkIds) {
      const auto size = static_cast<uint32_t>(std::min<uint64_t>(kChunkIds, length - from));
      const uint64_t next = std::min<uint64_t>(length, from + 2 * kChunkIds);
      for (uint64_t e = from + kChunkIds; e < next; e += kIdsPerLine) {
        Prefetch(level_, ids + e);
      }
      uint32_t* kept = ids_.Room(kChunkIds + kLaborSlack);
      if (all) std::copy_n(ids + from, size, kept);
      const uint32_t found = all ? size : loops_.filter(keys_, threshold, ids + from, size, kept);
      const uint32_t count = std::min(found, most - taken);
      ids_.Append(count);
      taken += count;
    }
    return taken;
  }

  const TopologyView& topology_;
  PrefetchLevel level_;
  IdStream<Table> ids_;
  const LaborLoops& loops_;
  LaborKeys keys_;
  uint32_t fanout_;
  HopTask* task_;
};

}  // namespace gnnd
