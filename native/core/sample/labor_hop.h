#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/prefetch.h"
#include "core/sample/expand.h"
#include "core/sample/labor.h"

namespace gnnd {

// Expands one hop by LABOR. Rows are read whole: each chunk of a row is asked for some rows, or one
// chunk, before it is looked at. Ids taken wait in a chunk of their own between the prefetch of
// their table entries and their use.
template <typename Table>
class LaborHop {
 public:
  LaborHop(const TopologyView& topology, Table* table, ExpandBuffers* buffers,
           const LaborLoops& loops, const LaborKeys& keys, uint32_t fanout, HopTask* task)
      : graph_indptr_(topology.indptr.data()),
        graph_indices_(topology.indices.data()),
        level_(buffers->level),
        ids_(table, buffers, task),
        loops_(loops),
        keys_(keys),
        fanout_(fanout),
        task_(task) {}

  void Run() {
    uint32_t edges = task_->num_edges;  // taken; those that waited are written
    for (uint32_t row = task_->first_row; row < task_->num_dst; ++row) {
      PrefetchRow(row);
      const uint64_t begin = graph_indptr_[task_->nodes[row]];
      const uint64_t degree = graph_indptr_[task_->nodes[row] + 1] - begin;
      const uint32_t taken = TakeRow(graph_indices_ + begin, degree);
      std::fill_n(task_->weight + edges, taken, LaborWeight(fanout_, degree));
      edges += taken;
      task_->indptr[row + 1] = edges;
    }
    ids_.Finish();
  }

 private:
  static constexpr uint32_t kChunkIds = ExpandBuffers::kChunkIds;
  static constexpr uint64_t kIdsPerLine = 16;
  static_assert(kChunkIds + kLaborSlack <= ExpandBuffers::kMaxGroupEdges);

  GNND_PREFETCHES void PrefetchRow(uint32_t row) const {
    constexpr uint32_t kBoundsAhead = 24;
    constexpr uint32_t kRowsAhead = 8;
    const uint32_t end = task_->num_dst;
    if (end - row > kBoundsAhead) {
      Prefetch(level_, graph_indptr_ + task_->nodes[row + kBoundsAhead]);
    }
    if (end - row <= kRowsAhead) return;
    const uint32_t node = task_->nodes[row + kRowsAhead];
    const uint64_t first = graph_indptr_[node];
    const uint64_t last = std::min(graph_indptr_[node + 1], first + kChunkIds);
    // From the start of the first line: a row that begins inside one ends in one more.
    for (uint64_t e = first - first % kIdsPerLine; e < last; e += kIdsPerLine) {
      Prefetch(level_, graph_indices_ + e);
    }
  }

  // Returns how many neighbours the row takes.
  uint32_t TakeRow(const uint32_t* row, uint64_t degree) {
    const uint32_t most = MaxLaborRow(fanout_);
    const bool all = degree <= fanout_;
    const uint32_t threshold = all ? 0 : LaborThreshold(fanout_, degree);
    uint32_t taken = 0;
    for (uint64_t from = 0; from < degree && taken < most; from += kChunkIds) {
      const auto size = static_cast<uint32_t>(std::min<uint64_t>(kChunkIds, degree - from));
      const uint64_t next = std::min<uint64_t>(degree, from + 2 * kChunkIds);
      for (uint64_t e = from + kChunkIds; e < next; e += kIdsPerLine) {
        Prefetch(level_, row + e);
      }
      uint32_t* kept = ids_.Room(kChunkIds + kLaborSlack);
      if (all) std::copy_n(row + from, size, kept);
      const uint32_t found = all ? size : loops_.filter(keys_, threshold, row + from, size, kept);
      const uint32_t count = std::min(found, most - taken);
      ids_.Append(count);
      taken += count;
    }
    return taken;
  }

  const uint64_t* graph_indptr_;
  const uint32_t* graph_indices_;
  PrefetchLevel level_;
  IdStream<Table> ids_;
  const LaborLoops& loops_;
  LaborKeys keys_;
  uint32_t fanout_;
  HopTask* task_;
};

}  // namespace gnnd
