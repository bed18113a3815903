#pragma once

#include <algorithm>
#include <cstdint>

#include "core/draw/tree.h"
#include "core/sample/expand.h"
#include "core/sample/seen_rows.h"
#include "core/sample/times.h"
#include "core/sample/tree_relabel.h"

namespace gnnd {

// The relabel table of a hop's sources, as HopRing and IdStream use one. Ids come in the order of
// edges, whose rows are known before, so the tree of each follows from how many came.
class TreeTable {
 public:
  TreeTable(TreeRelabel* sources, const TreeRelabel* destinations, const HopTask& task)
      : sources_(sources),
        destinations_(destinations),
        indptr_(task.indptr),
        asked_{task.first_row, task.num_edges},
        inserted_(asked_) {}

  GNND_PREFETCHES void Ask(PrefetchLevel level, uint32_t id) {
    sources_->Ask(level, NextTree(&asked_), id);
  }

  uint32_t InsertAll(const uint32_t* ids, uint32_t size, uint32_t* nodes, uint32_t count,
                     uint32_t* local_ids) {
    sources_->Reserve(nodes, count, size);
    for (uint32_t k = 0; k < size; ++k) {
      local_ids[k] = sources_->Insert(NextTree(&inserted_), ids[k], nodes, &count);
    }
    return count;
  }

 private:
  struct Cursor {
    uint32_t row;
    uint32_t edge;
  };

  uint32_t NextTree(Cursor* at) const {
    while (indptr_[at->row + 1] <= at->edge) ++at->row;
    ++at->edge;
    return destinations_->tree(at->row);
  }

  TreeRelabel* sources_;
  const TreeRelabel* destinations_;
  const uint32_t* indptr_;
  Cursor asked_;
  Cursor inserted_;
};

// Expands one hop with a finite fanout of what trees see, in the stages of SampledHop and one more:
// group g + 2 has the times prefetched that its binary searches begin with.
class TemporalHop : private HopRing<TreeTable> {
 public:
  struct Draw {
    uint32_t fanout = 0;
    bool replace = false;
    TimePick pick = TimePick::kUniform;
  };

  TemporalHop(const TopologyView& topology, const SeenRows& seen, TreeTable* table,
              ExpandBuffers* buffers, const PickLoops& loops, const Draw& draw, HopTask* task)
      : HopRing(topology, table, buffers, ExpandBuffers::RowsPerGroup(draw.fanout), task),
        seen_(seen),
        pick_group_(draw.replace ? loops.tree_group_replace : loops.tree_group),
        draw_(draw) {}

  void Run() {
    PrefetchFirstRows();
    for (uint32_t g = 0; g < num_groups_ + 2; ++g) {
      PrefetchRows(g + kBoundsAhead);
      seen_.Ask(level_, task_->dst, FirstRow(g + kTimesAhead), RowsOf(g + kTimesAhead));
      Follow(g - 1, g - 2);
      if (g < num_groups_) DrawGroup(g);
      LastTurn();
    }
  }

 private:
  using Slot = ExpandBuffers::Slot;

  // Number of groups by which the prefetch of rows' times is ahead of their draw.
  static constexpr uint32_t kTimesAhead = 2;

  uint32_t RowsOf(uint32_t group) const { return FirstRow(group + 1) - FirstRow(group); }

  void DrawGroup(uint32_t group) {
    Slot& slot = SlotOf(group);
    slot.size = 0;
    const uint32_t begin = FirstRow(group);
    const uint32_t rows = RowsOf(group);
    seen_.Find(task_->dst, begin, rows, &group_);
    const bool by_group = draw_.pick == TimePick::kUniform && draw_.fanout <= kMaxGroupFanout;
    if (by_group) PickGroup(rows);
    for (uint32_t r = 0; r < rows; ++r) {
      uint64_t* edge_at = slot.edge_at.data() + slot.size;
      const uint32_t size = RowSize(group_.lengths[r]);
      if (by_group && group_.lengths[r] < kTwoWordDegree) {
        for (uint32_t j = 0; j < size; ++j) edge_at[j] = picks_[j * kGroupRows + r];
      } else {
        PickRow(r, size, edge_at);
      }
      for (uint32_t j = 0; j < size; ++j) {
        edge_at[j] += group_.starts[r];
        Prefetch(level_, graph_indices_ + edge_at[j]);
      }
      slot.size += size;
      FinishRow(begin + r, slot);
      if ((r + 1) % kTurnRows == 0) Turn(kTurnRows * draw_.fanout);
    }
    drawn_ += slot.size;
  }

  uint32_t RowSize(uint64_t length) const {
    if (draw_.replace) return length == 0 ? 0 : draw_.fanout;
    return static_cast<uint32_t>(std::min<uint64_t>(length, draw_.fanout));
  }

  // Draws for all rows of the group but those of so many edges that a draw takes two words.
  void PickGroup(uint32_t rows) {
    alignas(64) uint32_t degrees[kGroupRows] = {};
    for (uint32_t r = 0; r < rows; ++r) {
      const uint64_t length = group_.lengths[r];
      degrees[r] = length < kTwoWordDegree ? static_cast<uint32_t>(length) : 0;
    }
    pick_group_(task_->stream, group_.trees, group_.nodes, degrees, draw_.fanout, picks_);
  }

  // Writes `size` positions among the edges that row r of the group sees.
  void PickRow(uint32_t r, uint32_t size, uint64_t* positions) {
    const uint64_t length = group_.lengths[r];
    if (size == 0) return;
    if (draw_.pick == TimePick::kRecent || (!draw_.replace && length <= draw_.fanout)) {
      for (uint32_t j = 0; j < size; ++j) positions[j] = length - size + j;
      return;
    }
    const DrawStream stream = TreeStreamOf(task_->stream, group_.trees[r]);
    if (draw_.replace) {
      RowPicker::PickWithReplacement(stream, group_.nodes[r], length, draw_.fanout, positions);
    } else {
      buffers_->row_picker.Pick(stream, group_.nodes[r], length, draw_.fanout, positions);
    }
  }

  const SeenRows& seen_;
  decltype(PickLoops::tree_group) pick_group_;
  Draw draw_;
  SeenGroup group_{};
  alignas(64) uint32_t picks_[kGroupRows * kMaxGroupFanout];
};

// Expands one hop that takes all that trees see.
inline void ExpandSeenRows(const TopologyView& topology, const SeenRows& seen, TreeTable* table,
                           ExpandBuffers* buffers, HopTask* task) {
  SeenGroup group{};
  IdStream<TreeTable> ids(table, buffers, task);
  uint32_t edges = task->num_edges;
  for (uint32_t first = task->first_row; first < task->num_dst; first += kGroupRows) {
    const uint32_t rows = std::min(kGroupRows, task->num_dst - first);
    seen.Find(task->dst, first, rows, &group);
    for (uint32_t r = 0; r < rows; ++r) {
      edges += static_cast<uint32_t>(group.lengths[r]);
      task->indptr[first + r + 1] = edges;
    }
    for (uint32_t r = 0; r < rows; ++r) {
      const uint32_t* row = topology.indices.data() + group.starts[r];
      for (uint64_t e = 0; e < group.lengths[r];) {
        const auto size = static_cast<uint32_t>(
            std::min<uint64_t>(ExpandBuffers::kChunkIds, group.lengths[r] - e));
        std::copy_n(row + e, size, ids.Room(size));
        ids.Append(size);
        e += size;
      }
    }
  }
  ids.Finish();
}

}  // namespace gnnd
