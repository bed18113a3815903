#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/prefetch.h"
#include "core/graph/topology_view.h"
#include "core/sample/picks.h"
#include "core/sample/row_skips.h"

// Expands one hop: from the rows of its destinations to drawn, deduplicated and relabelled edges.
//
// A random read of a large graph takes hundreds of cycles, so no stage waits for one: each
// prefetches what the next will read, and groups of rows pass through the stages one behind the
// other.
//
//   group g + 4   prefetch the rows' bounds
//   group g       read bounds, draw positions, prefetch the drawn neighbours
//   group g - 1   read neighbours, prefetch their table entries
//   group g - 2   look up or insert, write local ids
//
// The last two stages alternate with the first, some rows at a time: a core that requested all
// lines of a group at once would first wait for the memory, and then the memory for it.

namespace gnnd {

// The arrays of a hop. Pointers lead into the record's slot.
struct HopTask {
  DrawStream stream;
  uint32_t first_row;  // rows dst[first_row .. num_dst) are drawn
  uint32_t num_dst;
  const uint32_t* dst;  // nodes of the rows; where sources are of the same type, these are `nodes`
  uint32_t* nodes;      // all nodes so far of the sources' type; grows
  uint32_t count;       // number of nodes
  uint32_t* indptr;     // [num_dst + 1], out; entries up to first_row are filled already
  uint32_t* src;        // [edges], out
  float* weight;        // [edges], out, or null
  uint32_t num_edges;   // edges written; at first those of the rows before first_row
  RowSkips skips;       // neighbours that the first rows do without
};

// Buffers of the ring, owned by the sampler and sized once.
class ExpandBuffers {
 public:
  // Ids processed together when whole rows are taken.
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

  // `max_fanout` is the largest finite fanout, 0 if there is none.
  ExpandBuffers(uint32_t max_fanout, PrefetchLevel prefetch)
      : level(prefetch), row_picker(max_fanout) {
    const uint32_t edges = std::max(kMaxGroupEdges, max_fanout);
    for (Slot& slot : slots) {
      slot.edge_at.resize(edges + kMaxAliasDraws);  // the last row may write more than it keeps
      slot.ids.resize(edges);
    }
  }

  // With a fanout too large for groups, fewer rows fill the ring.
  static uint32_t RowsPerGroup(uint32_t fanout) {
    return fanout <= kMaxGroupFanout ? kGroupRows : std::max(kMaxGroupEdges / fanout, uint32_t{1});
  }

  uint64_t bytes() const {
    const Slot& slot = slots[0];
    const uint64_t slot_bytes =
        slot.edge_at.size() * sizeof(uint64_t) + slot.ids.size() * sizeof(uint32_t);
    return kSlots * slot_bytes + row_picker.bytes();
  }

  PrefetchLevel level;
  std::array<Slot, kSlots> slots;
  RowPicker row_picker;
};

// The stages shared by hops that work in groups of rows: the ring's first stage and its last two.
// Table is DenseRelabel or HashRelabel.
template <typename Table>
class HopRing {
 protected:
  // Number of groups by which the prefetch of rows' bounds is ahead of their draw.
  static constexpr uint32_t kBoundsAhead = 4;
  // Rows drawn between two turns of the later stages.
  static constexpr uint32_t kTurnRows = 4;

  HopRing(const TopologyView& topology, Table* table, ExpandBuffers* buffers,
          uint32_t rows_per_group, HopTask* task)
      : graph_indptr_(topology.indptr.data()),
        graph_indices_(topology.indices.data()),
        table_(table),
        buffers_(buffers),
        task_(task),
        level_(buffers->level),
        rows_per_group_(rows_per_group),
        num_groups_((task->num_dst - task->first_row + rows_per_group - 1) / rows_per_group),
        drawn_(task->num_edges) {}

  ExpandBuffers::Slot& SlotOf(uint32_t group) {
    return buffers_->slots[group % ExpandBuffers::kSlots];
  }
  uint32_t FirstRow(uint32_t group) const {
    return static_cast<uint32_t>(
        std::min<uint64_t>(task_->first_row + uint64_t{group} * rows_per_group_, task_->num_dst));
  }

  GNND_PREFETCHES void PrefetchRows(uint32_t group) const {
    const uint32_t end = FirstRow(group + 1);
    for (uint32_t row = FirstRow(group); row < end; ++row) {
      Prefetch(level_, graph_indptr_ + task_->dst[row]);
    }
  }
  GNND_PREFETCHES void PrefetchFirstRows() const {
    for (uint32_t group = 0; group < kBoundsAhead; ++group) PrefetchRows(group);
  }

  // Ends a row whose edges are the last in the slot.
  void FinishRow(uint32_t row, const ExpandBuffers::Slot& slot) {
    task_->indptr[row + 1] = drawn_ + slot.size;
  }

  // Sets the groups whose ids are read and inserted from now on; other numbers mean none.
  void Follow(uint32_t reads, uint32_t inserts) {
    reads_ = {reads < num_groups_ ? &SlotOf(reads) : nullptr, 0};
    inserts_ = {inserts < num_groups_ ? &SlotOf(inserts) : nullptr, 0};
  }

  // Processes up to `ids` ids of either group. The older group goes first: its lines have arrived,
  // and the loads of the other overlap with it.
  void Turn(uint32_t ids) {
    Insert(ids);
    Read(ids);
  }
  // Processes all that is left of both groups.
  void LastTurn() { Turn(std::numeric_limits<uint32_t>::max()); }

  const uint64_t* graph_indptr_;
  const uint32_t* graph_indices_;
  Table* table_;
  ExpandBuffers* buffers_;
  HopTask* task_;
  PrefetchLevel level_;
  uint32_t rows_per_group_;
  uint32_t num_groups_;
  uint32_t drawn_;  // edges of the groups drawn

 private:
  // The progress of a group in a stage.
  struct Follower {
    ExpandBuffers::Slot* slot = nullptr;
    uint32_t done = 0;  // ids processed

    uint32_t Next(uint32_t ids) const {
      return slot == nullptr ? 0 : std::min(ids, slot->size - done);
    }
  };

  void Read(uint32_t most) {
    const uint32_t end = reads_.done + reads_.Next(most);
    if (end == reads_.done) return;
    const uint64_t* edge_at = reads_.slot->edge_at.data();
    uint32_t* ids = reads_.slot->ids.data();
    for (uint32_t k = reads_.done; k < end; ++k) {
      ids[k] = graph_indices_[edge_at[k]];
      table_->Ask(level_, ids[k]);
    }
    reads_.done = end;
  }

  void Insert(uint32_t most) {
    const uint32_t size = inserts_.Next(most);
    if (size == 0) return;
    task_->count = table_->InsertAll(inserts_.slot->ids.data() + inserts_.done, size, task_->nodes,
                                     task_->count, task_->src + task_->num_edges);
    task_->num_edges += size;
    inserts_.done += size;
  }

  Follower reads_;
  Follower inserts_;
};

// Uniform draws with a finite fanout.
template <typename Table>
class SampledHop : private HopRing<Table> {
 public:
  SampledHop(const TopologyView& topology, Table* table, ExpandBuffers* buffers,
             const PickLoops& loops, uint32_t fanout, bool replace, HopTask* task)
      : Ring(topology, table, buffers, ExpandBuffers::RowsPerGroup(fanout), task),
        pick_group_(replace ? loops.group_replace : loops.group),
        fanout_(fanout),
        replace_(replace) {}

  void Run() {
    this->PrefetchFirstRows();
    for (uint32_t g = 0; g < this->num_groups_ + 2; ++g) {
      this->PrefetchRows(g + this->kBoundsAhead);
      this->Follow(g - 1, g - 2);
      if (g < this->num_groups_) Draw(g);
      this->LastTurn();
    }
  }

 private:
  using Ring = HopRing<Table>;
  using Slot = ExpandBuffers::Slot;

  uint32_t RowSize(uint64_t degree) const {
    if (replace_) return degree == 0 ? 0 : fanout_;
    return static_cast<uint32_t>(std::min<uint64_t>(degree, fanout_));
  }

  void Draw(uint32_t group) {
    Slot& slot = this->SlotOf(group);
    const uint32_t begin = this->FirstRow(group);
    const uint32_t rows = this->FirstRow(group + 1) - begin;
    slot.size = 0;
    if (begin < this->task_->skips.num_rows()) {
      DrawRows<true>(begin, rows, &slot);
    } else {
      DrawRows<false>(begin, rows, &slot);
    }
    this->drawn_ += slot.size;
  }

  // kSkips: some of the rows may do without neighbours.
  template <bool kSkips>
  void DrawRows(uint32_t begin, uint32_t rows, Slot* slot) {
    if (fanout_ <= kMaxGroupFanout) {
      DrawGroup<kSkips>(begin, rows, slot);
      return;
    }
    for (uint32_t row = begin; row < begin + rows; ++row) {
      const uint64_t start = this->graph_indptr_[this->task_->dst[row]];
      DrawRow<kSkips>(row, start, DegreeOf<kSkips>(row, start), slot);
      this->FinishRow(row, *slot);
    }
  }

  // Neighbours that the row has when it is drawn.
  template <bool kSkips>
  uint64_t DegreeOf(uint32_t row, uint64_t start) const {
    const uint64_t degree = this->graph_indptr_[this->task_->dst[row] + 1] - start;
    return kSkips ? degree - this->task_->skips.Absent(row) : degree;
  }

  template <bool kSkips>
  void DrawGroup(uint32_t begin, uint32_t rows, Slot* slot) {
    alignas(64) uint32_t nodes[kGroupRows] = {};
    alignas(64) uint32_t degrees[kGroupRows] = {};  // degrees of rows drawn by group, else 0
    alignas(64) uint32_t picks[kGroupRows * kMaxGroupFanout];
    uint64_t starts[kGroupRows];
    uint64_t lengths[kGroupRows];
    for (uint32_t r = 0; r < rows; ++r) {
      nodes[r] = this->task_->dst[begin + r];
      starts[r] = this->graph_indptr_[nodes[r]];
      lengths[r] = DegreeOf<kSkips>(begin + r, starts[r]);
      degrees[r] = lengths[r] < kTwoWordDegree ? static_cast<uint32_t>(lengths[r]) : 0;
    }
    pick_group_(this->task_->stream, nodes, degrees, fanout_, picks);
    for (uint32_t r = 0; r < rows; ++r) {
      if (lengths[r] >= kTwoWordDegree) [[unlikely]] {
        DrawRow<kSkips>(begin + r, starts[r], lengths[r], slot);
      } else if (kSkips) {
        uint64_t* edge_at = slot->edge_at.data() + slot->size;
        const uint32_t size = RowSize(lengths[r]);
        for (uint32_t j = 0; j < size; ++j) edge_at[j] = picks[j * kGroupRows + r];
        KeepOf(begin + r, starts[r], size, slot);
      } else {
        // Writes all fanout positions whatever the degree, so that the loop's length is constant.
        uint64_t* edge_at = slot->edge_at.data() + slot->size;
        for (uint32_t j = 0; j < fanout_; ++j) {
          edge_at[j] = starts[r] + picks[j * kGroupRows + r];
          Prefetch(this->level_, this->graph_indices_ + edge_at[j]);
        }
        slot->size += RowSize(lengths[r]);
      }
      this->FinishRow(begin + r, *slot);
      if ((r + 1) % this->kTurnRows == 0) this->Turn(this->kTurnRows * fanout_);
    }
  }

  // Appends the drawn positions of a row, as far as the row keeps them.
  void KeepOf(uint32_t row, uint64_t start, uint32_t size, Slot* slot) {
    uint64_t* edge_at = slot->edge_at.data() + slot->size;
    const uint32_t kept = this->task_->skips.Keep(row, edge_at, size);
    for (uint32_t j = 0; j < kept; ++j) {
      edge_at[j] += start;
      Prefetch(this->level_, this->graph_indices_ + edge_at[j]);
    }
    slot->size += kept;
  }

  template <bool kSkips>
  void DrawRow(uint32_t row, uint64_t start, uint64_t degree, Slot* slot) {
    const uint32_t node = this->task_->dst[row];
    uint64_t* edge_at = slot->edge_at.data() + slot->size;
    const uint32_t size = RowSize(degree);
    if (size == 0) return;
    if (replace_) {
      RowPicker::PickWithReplacement(this->task_->stream, node, degree, fanout_, edge_at);
    } else if (degree > fanout_) {
      this->buffers_->row_picker.Pick(this->task_->stream, node, degree, fanout_, edge_at);
    } else {
      for (uint32_t j = 0; j < size; ++j) edge_at[j] = j;
    }
    if (kSkips) {
      KeepOf(row, start, size, slot);
      return;
    }
    for (uint32_t j = 0; j < size; ++j) {
      edge_at[j] += start;
      Prefetch(this->level_, this->graph_indices_ + edge_at[j]);
    }
    slot->size += size;
  }

  decltype(PickLoops::group) pick_group_;
  uint32_t fanout_;
  bool replace_;
};

// Prefetches for hops that read whole rows: the bounds of a row further on, and the first ids of
// one that comes soon.
GNND_PREFETCHES void PrefetchRowsAhead(PrefetchLevel level, const TopologyView& topology,
                                       const HopTask& task, uint32_t row) {
  constexpr uint32_t kBoundsAhead = 24;
  constexpr uint32_t kRowsAhead = 8;
  constexpr uint64_t kIdsPerLine = 16;
  const uint32_t end = task.num_dst;
  const uint64_t* indptr = topology.indptr.data();
  if (end - row > kBoundsAhead) Prefetch(level, indptr + task.dst[row + kBoundsAhead]);
  if (end - row <= kRowsAhead) return;
  const uint32_t node = task.dst[row + kRowsAhead];
  const uint64_t first = indptr[node];
  const uint64_t last = std::min(indptr[node + 1], first + ExpandBuffers::kChunkIds);
  // Starts at the line's start: a row that begins inside a line ends in one more.
  for (uint64_t e = first - first % kIdsPerLine; e < last; e += kIdsPerLine) {
    Prefetch(level, topology.indices.data() + e);
  }
}

// Feeds ids into a sample when rows are read in sequence: ids wait in chunks between the prefetch
// of their table entries and their use.
template <typename Table>
class IdStream {
 public:
  IdStream(Table* table, ExpandBuffers* buffers, HopTask* task)
      : table_(table),
        task_(task),
        level_(buffers->level),
        filling_(&buffers->slots[0]),
        waiting_(&buffers->slots[1]) {
    filling_->size = 0;
    waiting_->size = 0;
  }

  // Room for the next up to `size` ids; at most ExpandBuffers::kMaxGroupEdges or the largest
  // fanout.
  uint32_t* Room(uint32_t size) {
    if (filling_->size + size > filling_->ids.size()) Flush();
    return filling_->ids.data() + filling_->size;
  }

  // Takes the first `size` ids written to Room.
  void Append(uint32_t size) {
    const uint32_t* ids = filling_->ids.data() + filling_->size;
    for (uint32_t k = 0; k < size; ++k) table_->Ask(level_, ids[k]);
    filling_->size += size;
  }

  void Finish() {
    Flush();
    Flush();
  }

 private:
  // Writes the waiting chunk; the filled one then waits.
  void Flush() {
    task_->count = table_->InsertAll(waiting_->ids.data(), waiting_->size, task_->nodes,
                                     task_->count, task_->src + task_->num_edges);
    task_->num_edges += waiting_->size;
    waiting_->size = 0;
    std::swap(filling_, waiting_);
  }

  Table* table_;
  HopTask* task_;
  PrefetchLevel level_;
  ExpandBuffers::Slot* filling_;
  ExpandBuffers::Slot* waiting_;
};

// Feeds the entries [begin, end) of the topology's indices, of one row, to `ids`; with `alias`,
// only those of weight above 0. Returns the number of edges.
template <typename Table>
uint32_t TakeEntries(const TopologyView& topology, const AliasEntry* alias, uint64_t begin,
                     uint64_t end, IdStream<Table>* ids) {
  constexpr uint64_t kChunkIds = ExpandBuffers::kChunkIds;
  const uint32_t* graph_indices = topology.indices.data();
  uint32_t edges = 0;
  for (uint64_t e = begin; e < end;) {
    const uint64_t chunk_end = std::min(end, e + kChunkIds);
    uint32_t* out = ids->Room(kChunkIds);
    uint32_t size = 0;
    for (; e < chunk_end; ++e) {
      out[size] = graph_indices[e];
      size += alias == nullptr || alias[e].threshold != 0 ? 1 : 0;
    }
    ids->Append(size);
    edges += size;
  }
  return edges;
}

// Expands one hop that takes whole rows; with `alias`, only entries of weight above 0.
template <typename Table>
void ExpandFullRows(const TopologyView& topology, Table* table, ExpandBuffers* buffers,
                    const AliasEntry* alias, HopTask* task) {
  constexpr uint32_t kRowsAhead = 16;
  const uint64_t* graph_indptr = topology.indptr.data();
  const uint32_t* graph_indices = topology.indices.data();
  const PrefetchLevel level = buffers->level;
  IdStream<Table> ids(table, buffers, task);
  uint32_t edges = task->num_edges;
  for (uint32_t row = task->first_row; row < task->num_dst; ++row) {
    const uint64_t row_ahead = uint64_t{row} + kRowsAhead;
    if (row_ahead < task->num_dst) Prefetch(level, graph_indptr + task->dst[row_ahead]);
    const uint64_t next_row = uint64_t{row} + kRowsAhead / 4;
    if (next_row < task->num_dst) {
      Prefetch(level, graph_indices + graph_indptr[task->dst[next_row]]);
    }
    uint64_t begin = graph_indptr[task->dst[row]];
    const uint64_t end = graph_indptr[task->dst[row] + 1];
    if (row < task->skips.num_rows()) {
      const uint64_t start = begin;
      for (const uint64_t place : task->skips.of(row)) {
        edges += TakeEntries(topology, alias, begin, start + place, &ids);
        begin = start + place + 1;
      }
    }
    edges += TakeEntries(topology, alias, begin, end, &ids);
    task->indptr[row + 1] = edges;
  }
  ids.Finish();
}

}  // namespace gnnd
