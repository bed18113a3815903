#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/sample/expand.h"
#include "core/sample/labor.h"

namespace gnnd {

// Expands one hop by LABOR. Rows are read in sequence, all of them; the memory's own prefetcher
// does the rest of a row once its first lines are asked for. Ids taken wait in a chunk between the
// prefetch of their table entries and their use.
template <typename Table>
class LaborHop {
 public:
  LaborHop(const TopologyView& topology, Table* table, ExpandBuffers* buffers, LaborFilterFn filter,
           LaborKey key, uint32_t fanout, HopTask* task)
      : graph_indptr_(topology.indptr.data()),
        graph_indices_(topology.indices.data()),
        table_(table),
        filling_(&buffers->slots[0]),
        waiting_(&buffers->slots[1]),
        filter_(filter),
        key_(key),
        fanout_(fanout),
        task_(task) {}

  void Run() {
    filling_->size = 0;
    waiting_->size = 0;
    uint32_t edges = task_->num_edges;  // taken; those that waited are written
    for (uint32_t row = task_->first_row; row < task_->num_dst; ++row) {
      Prefetch(row);
      const uint64_t begin = graph_indptr_[task_->nodes[row]];
      const uint64_t degree = graph_indptr_[task_->nodes[row] + 1] - begin;
      const uint32_t taken = TakeRow(graph_indices_ + begin, degree);
      std::fill_n(task_->weight + edges, taken, LaborWeight(fanout_, degree));
      edges += taken;
      task_->indptr[row + 1] = edges;
    }
    Flush();
    Flush();
  }

 private:
  using Slot = ExpandBuffers::Slot;
  static constexpr uint32_t kChunkIds = ExpandBuffers::kChunkIds;
  static_assert(2 * kChunkIds <= ExpandBuffers::kMaxGroupEdges);

  void Prefetch(uint32_t row) const {
    constexpr uint32_t kBoundsAhead = 24;
    constexpr uint32_t kRowsAhead = 8;
    constexpr uint64_t kIdsPerLine = 16;
    constexpr uint64_t kLines = 4;
    const uint32_t end = task_->num_dst;
    if (end - row > kBoundsAhead) {
      __builtin_prefetch(graph_indptr_ + task_->nodes[row + kBoundsAhead]);
    }
    if (end - row <= kRowsAhead) return;
    const uint32_t node = task_->nodes[row + kRowsAhead];
    const uint64_t first = graph_indptr_[node];
    const uint64_t last = std::min(graph_indptr_[node + 1], first + kLines * kIdsPerLine);
    for (uint64_t e = first; e < last; e += kIdsPerLine) __builtin_prefetch(graph_indices_ + e);
  }

  // Returns how many neighbours the row takes.
  uint32_t TakeRow(const uint32_t* row, uint64_t degree) {
    const uint32_t most = MaxLaborRow(fanout_);
    const bool all = degree <= fanout_;
    const uint32_t threshold = all ? 0 : LaborThreshold(fanout_, degree);
    uint32_t taken = 0;
    for (uint64_t from = 0; from < degree && taken < most; from += kChunkIds) {
      const auto size = static_cast<uint32_t>(std::min<uint64_t>(kChunkIds, degree - from));
      if (filling_->size + kChunkIds + kLaborSlack > filling_->ids.size()) Flush();
      uint32_t* kept = filling_->ids.data() + filling_->size;
      if (all) std::copy_n(row + from, size, kept);
      const uint32_t found = all ? size : filter_(key_, threshold, row + from, size, kept);
      const uint32_t count = std::min(found, most - taken);
      for (uint32_t k = 0; k < count; ++k) table_->Prefetch(kept[k]);
      filling_->size += count;
      taken += count;
    }
    return taken;
  }

  // Writes the chunk that waits; the one that was filled waits from now on.
  void Flush() {
    task_->count = table_->InsertAll(waiting_->ids.data(), waiting_->size, task_->nodes,
                                     task_->count, task_->src + task_->num_edges);
    task_->num_edges += waiting_->size;
    waiting_->size = 0;
    std::swap(filling_, waiting_);
  }

  const uint64_t* graph_indptr_;
  const uint32_t* graph_indices_;
  Table* table_;
  Slot* filling_;
  Slot* waiting_;
  LaborFilterFn filter_;
  LaborKey key_;
  uint32_t fanout_;
  HopTask* task_;
};

}  // namespace gnnd
