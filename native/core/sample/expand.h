#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/dataset/topology_view.h"
#include "core/sample/picks.h"

// One hop: from the rows of its destinations to drawn, deduplicated and relabelled edges.
//
// A random read of a large graph takes hundreds of cycles, so no stage waits for one: each asks for
// what the next will read, and groups of rows travel through the stages one behind the other.
//
//   group g + 2   prefetch the rows' bounds
//   group g       read bounds, draw positions, prefetch the drawn neighbours
//   group g - 1   read neighbours, prefetch their table entries
//   group g - 2   look up or insert, write local ids

namespace gnnd {

// What a hop reads and writes. Pointers lead into the record's slot.
struct HopTask {
  DrawStream stream;
  uint32_t num_dst;  // rows nodes[0 .. num_dst)
  uint32_t* nodes;   // all nodes so far; grows
  uint32_t count;    // of nodes
  uint32_t* indptr;  // [num_dst + 1], out
  uint32_t* src;     // [edges], out
};

// Buffers of the ring, owned by the sampler and sized once.
class ExpandBuffers {
 public:
  // Ids that travel together when whole rows are taken.
  static constexpr uint32_t kChunkIds = 256;
  static constexpr uint32_t kSlots = 3;
  // Edges of a group; a single row of a larger fanout may have more.
  static constexpr uint32_t kMaxGroupEdges = kGroupRows * kMaxGroupFanout;
  static_assert(kChunkIds <= kMaxGroupEdges);

  struct Slot {
    std::vector<uint64_t> edge_at;  // positions in the topology's indices
    std::vector<uint32_t> ids;
    uint32_t size = 0;
  };

  // `max_fanout` is the largest finite one, 0 if there is none.
  explicit ExpandBuffers(uint32_t max_fanout) : row_picker(max_fanout) {
    const uint32_t edges = std::max(kMaxGroupEdges, max_fanout);
    for (Slot& slot : slots) {
      slot.edge_at.resize(edges);
      slot.ids.resize(edges);
    }
  }

  // Beyond the road by groups, rows are so long that fewer of them fill the ring.
  static uint32_t RowsPerGroup(uint32_t fanout) {
    return fanout <= kMaxGroupFanout ? kGroupRows : std::max(kMaxGroupEdges / fanout, uint32_t{1});
  }

  uint64_t bytes() const {
    constexpr uint64_t kEdgeBytes = sizeof(uint64_t) + sizeof(uint32_t);
    return kSlots * slots[0].ids.size() * kEdgeBytes + row_picker.bytes();
  }

  std::array<Slot, kSlots> slots;
  RowPicker row_picker;
};

// Expands one hop with a finite fanout. Table is DenseRelabel or HashRelabel.
template <typename Table>
class SampledHop {
 public:
  SampledHop(const TopologyView& topology, Table* table, ExpandBuffers* buffers,
             PickGroupFn pick_group, uint32_t fanout, HopTask* task)
      : graph_indptr_(topology.indptr.data()),
        graph_indices_(topology.indices.data()),
        table_(table),
        buffers_(buffers),
        pick_group_(pick_group),
        fanout_(fanout),
        rows_per_group_(ExpandBuffers::RowsPerGroup(fanout)),
        num_groups_((task->num_dst + rows_per_group_ - 1) / rows_per_group_),
        task_(task) {}

  // Returns the number of edges.
  uint32_t Run() {
    task_->indptr[0] = 0;
    PrefetchRows(0);
    PrefetchRows(1);
    for (uint32_t g = 0; g < num_groups_ + 2; ++g) {
      PrefetchRows(g + 2);
      // The oldest group first: its lines have arrived, and the loads behind it overlap with it.
      if (g >= 2) Insert(SlotOf(g - 2));
      if (g >= 1 && g <= num_groups_) Read(&SlotOf(g - 1));
      if (g < num_groups_) Draw(g);
    }
    return inserted_;
  }

 private:
  ExpandBuffers::Slot& SlotOf(uint32_t group) {
    return buffers_->slots[group % ExpandBuffers::kSlots];
  }
  uint32_t RowsBefore(uint32_t group) const {
    return static_cast<uint32_t>(
        std::min<uint64_t>(uint64_t{group} * rows_per_group_, task_->num_dst));
  }

  void PrefetchRows(uint32_t group) const {
    const uint32_t end = RowsBefore(group + 1);
    for (uint32_t row = RowsBefore(group); row < end; ++row) {
      __builtin_prefetch(graph_indptr_ + task_->nodes[row]);
    }
  }

  void Draw(uint32_t group) {
    ExpandBuffers::Slot& slot = SlotOf(group);
    const uint32_t begin = RowsBefore(group);
    const uint32_t rows = RowsBefore(group + 1) - begin;
    slot.size = 0;
    if (fanout_ <= kMaxGroupFanout) {
      DrawGroup(begin, rows, &slot);
    } else {
      for (uint32_t row = begin; row < begin + rows; ++row) {
        const uint32_t node = task_->nodes[row];
        const uint64_t start = graph_indptr_[node];
        DrawRow(node, start, graph_indptr_[node + 1] - start, &slot);
        FinishRow(row, graph_indptr_[node + 1] - start, &slot);
      }
    }
    drawn_ += slot.size;
  }

  void DrawGroup(uint32_t begin, uint32_t rows, ExpandBuffers::Slot* slot) {
    alignas(64) uint32_t nodes[kGroupRows] = {};
    alignas(64) uint32_t degrees[kGroupRows] = {};  // of rows that are drawn by group, else 0
    alignas(64) uint32_t picks[kGroupRows * kMaxGroupFanout];
    uint64_t starts[kGroupRows];
    uint64_t lengths[kGroupRows];
    for (uint32_t r = 0; r < rows; ++r) {
      nodes[r] = task_->nodes[begin + r];
      starts[r] = graph_indptr_[nodes[r]];
      lengths[r] = graph_indptr_[nodes[r] + 1] - starts[r];
      degrees[r] = lengths[r] < kTwoWordDegree ? static_cast<uint32_t>(lengths[r]) : 0;
    }
    pick_group_(task_->stream, nodes, degrees, fanout_, picks);
    for (uint32_t r = 0; r < rows; ++r) {
      if (lengths[r] >= kTwoWordDegree) [[unlikely]] {
        DrawRow(nodes[r], starts[r], lengths[r], slot);
      } else {
        // All positions whatever the degree: a loop whose length is always the same.
        uint64_t* edge_at = slot->edge_at.data() + slot->size;
        for (uint32_t j = 0; j < fanout_; ++j) {
          edge_at[j] = starts[r] + picks[j * kGroupRows + r];
          __builtin_prefetch(graph_indices_ + edge_at[j]);
        }
      }
      FinishRow(begin + r, lengths[r], slot);
    }
  }

  void DrawRow(uint32_t node, uint64_t start, uint64_t degree, ExpandBuffers::Slot* slot) {
    uint64_t* edge_at = slot->edge_at.data() + slot->size;
    const auto size = static_cast<uint32_t>(std::min<uint64_t>(degree, fanout_));
    if (degree > fanout_) {
      buffers_->row_picker.Pick(task_->stream, node, degree, fanout_, edge_at);
    } else {
      for (uint32_t j = 0; j < size; ++j) edge_at[j] = j;
    }
    for (uint32_t j = 0; j < size; ++j) {
      edge_at[j] += start;
      __builtin_prefetch(graph_indices_ + edge_at[j]);
    }
  }

  void FinishRow(uint32_t row, uint64_t degree, ExpandBuffers::Slot* slot) {
    slot->size += static_cast<uint32_t>(std::min<uint64_t>(degree, fanout_));
    task_->indptr[row + 1] = drawn_ + slot->size;
  }

  void Read(ExpandBuffers::Slot* slot) const {
    const uint64_t* edge_at = slot->edge_at.data();
    uint32_t* ids = slot->ids.data();
    for (uint32_t k = 0; k < slot->size; ++k) {
      ids[k] = graph_indices_[edge_at[k]];
      table_->Prefetch(ids[k]);
    }
  }

  void Insert(const ExpandBuffers::Slot& slot) {
    task_->count = table_->InsertAll(slot.ids.data(), slot.size, task_->nodes, task_->count,
                                     task_->src + inserted_);
    inserted_ += slot.size;
  }

  const uint64_t* graph_indptr_;
  const uint32_t* graph_indices_;
  Table* table_;
  ExpandBuffers* buffers_;
  PickGroupFn pick_group_;
  uint32_t fanout_;
  uint32_t rows_per_group_;
  uint32_t num_groups_;
  HopTask* task_;
  uint32_t drawn_ = 0;     // edges of the groups drawn
  uint32_t inserted_ = 0;  // edges written to src
};

// Expands one hop that takes whole rows; returns the number of edges. Rows are read in sequence, so
// only the table entries are random reads: chunks of ids lie between their prefetch and their use.
template <typename Table>
uint32_t ExpandFullRows(const TopologyView& topology, Table* table, ExpandBuffers* buffers,
                        HopTask* task) {
  constexpr uint32_t kRowsAhead = 16;
  const uint64_t* graph_indptr = topology.indptr.data();
  const uint32_t* graph_indices = topology.indices.data();
  ExpandBuffers::Slot* filling = &buffers->slots[0];
  ExpandBuffers::Slot* waiting = &buffers->slots[1];
  filling->size = 0;
  waiting->size = 0;
  uint32_t inserted = 0;
  const auto insert_waiting = [&] {
    task->count = table->InsertAll(waiting->ids.data(), waiting->size, task->nodes, task->count,
                                   task->src + inserted);
    inserted += waiting->size;
    waiting->size = 0;
  };

  uint64_t edges = 0;
  task->indptr[0] = 0;
  for (uint32_t row = 0; row < task->num_dst; ++row) {
    const uint64_t row_ahead = uint64_t{row} + kRowsAhead;
    if (row_ahead < task->num_dst) __builtin_prefetch(graph_indptr + task->nodes[row_ahead]);
    const uint64_t next_row = uint64_t{row} + kRowsAhead / 4;
    if (next_row < task->num_dst) {
      __builtin_prefetch(graph_indices + graph_indptr[task->nodes[next_row]]);
    }
    const uint64_t begin = graph_indptr[task->nodes[row]];
    const uint64_t end = graph_indptr[task->nodes[row] + 1];
    for (uint64_t e = begin; e < end; ++e) {
      filling->ids[filling->size] = graph_indices[e];
      table->Prefetch(graph_indices[e]);
      if (++filling->size < ExpandBuffers::kChunkIds) continue;
      insert_waiting();
      std::swap(filling, waiting);
    }
    edges += end - begin;
    task->indptr[row + 1] = static_cast<uint32_t>(edges);
  }
  insert_waiting();
  std::swap(filling, waiting);
  insert_waiting();
  return inserted;
}

}  // namespace gnnd
