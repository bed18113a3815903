#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/prefetch.h"
#include "core/sample/expand.h"
#include "core/sample/walk.h"

namespace gnnd {

// The rows of nodes that do without neighbours, found by node: walks come to such a node from other
// rows, too. Open addressing, at most half full.
class SkippingNodes {
 public:
  void Build(const uint32_t* nodes, const RowSkips& skips) {
    const uint32_t rows = skips.num_rows();
    const uint64_t slots = std::bit_ceil(uint64_t{2} * rows + 2);
    rows_.assign(slots, kNoVisit);
    shift_ = 64 - static_cast<uint32_t>(std::countr_zero(slots));
    for (uint32_t row = 0; row < rows; ++row) {
      if (skips.count(row) == 0) continue;
      uint64_t slot = SlotOf(nodes[row]);
      while (rows_[slot] != kNoVisit) slot = (slot + 1) & (slots - 1);
      rows_[slot] = row;
    }
  }

  // The node's row, kNoVisit if it has all its neighbours. `nodes` are those of Build.
  uint32_t Find(const uint32_t* nodes, uint32_t node) const {
    uint64_t slot = SlotOf(node);
    while (rows_[slot] != kNoVisit && nodes[rows_[slot]] != node) {
      slot = (slot + 1) & (rows_.size() - 1);
    }
    return rows_[slot];
  }

  uint64_t bytes() const { return rows_.size() * sizeof(uint32_t); }

 private:
  uint64_t SlotOf(uint32_t node) const {
    constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
    return (node * kGolden) >> shift_;
  }

  std::vector<uint32_t> rows_;
  uint32_t shift_ = 0;
};

// State of the walks of a group of rows. Sized once.
class WalkBuffers {
 public:
  // Walkers that step together: enough to keep the memory busy, few enough for the near caches.
  static constexpr uint32_t kMaxWalkers = 512;

  // Walkers that still walk; element i of each array belongs to one walker.
  struct Walkers {
    alignas(64) uint32_t at[kMaxWalkers];        // present node
    alignas(64) uint32_t start[kMaxWalkers];     // the row's node
    alignas(64) uint32_t block[kMaxWalkers];     // block of the next step's words
    alignas(64) uint32_t visit_at[kMaxWalkers];  // place of the next step's visit
    alignas(64) uint32_t low[kMaxWalkers];       // the step's words
    alignas(64) uint32_t high[kMaxWalkers];
    alignas(64) uint32_t end[kMaxWalkers];
    alignas(64) uint64_t edge_at[kMaxWalkers];
  };
  static_assert(kMaxWalkers % kWalkLanes == 0 && kMaxWalkers >= kMaxWalks);

  WalkBuffers(bool used, const WalkOptions& walk)
      : options(used ? walk : WalkOptions()),
        rows_per_group(kMaxWalkers / options.walks),
        visits_per_row((options.walks * options.length + kWalkLanes - 1) / kWalkLanes * kWalkLanes),
        counter(used ? visits_per_row : 0),
        visits(used ? size_t{rows_per_group} * visits_per_row : 0),
        walkers(used ? std::make_unique<Walkers>() : nullptr) {}

  uint64_t bytes() const {
    return visits.size() * sizeof(uint32_t) + counter.bytes() + skipping.bytes() +
           (walkers ? sizeof(Walkers) : 0);
  }

  WalkOptions options;
  uint32_t rows_per_group;
  uint32_t visits_per_row;  // visit (w, s) is at w * length + s; padded to whole vectors
  VisitCounter counter;
  SkippingNodes skipping;        // built where a batch has any
  std::vector<uint32_t> visits;  // visits of the group's rows
  std::unique_ptr<Walkers> walkers;
};

// Expands one hop by random walks. All walkers of a group take a step together, in two passes, each
// of which prefetches what the next one reads.
template <typename Table>
class WalkHop {
 public:
  WalkHop(const TopologyView& topology, Table* table, ExpandBuffers* ring, WalkBuffers* buffers,
          const WalkLoops& loops, uint32_t fanout, HopTask* task)
      : graph_indptr_(topology.indptr.data()),
        graph_indices_(topology.indices.data()),
        level_(ring->level),
        ids_(table, ring, task),
        buffers_(buffers),
        loops_(loops),
        walk_(buffers->options),
        end_below_(RestartThreshold(buffers->options.restart_prob)),
        fanout_(std::min(fanout, buffers->visits_per_row)),
        task_(task) {}

  void Run() {
    chosen_ = task_->num_edges;
    const bool skips = task_->skips.num_rows() > 0 && !task_->skips.after;
    if (skips) buffers_->skipping.Build(task_->dst, task_->skips);
    PrefetchRows(task_->first_row);
    for (uint32_t begin = task_->first_row; begin < task_->num_dst;) {
      const uint32_t rows = std::min(buffers_->rows_per_group, task_->num_dst - begin);
      Start(begin, rows);
      PrefetchRows(begin + rows);
      for (uint32_t step = 0; step < walk_.length && walking_ > 0; ++step) {
        if (skips) {
          Draw<true>();
        } else {
          Draw<false>();
        }
        Move();
      }
      for (uint32_t r = 0; r < rows; ++r) Choose(begin, r);
      begin += rows;
    }
    ids_.Finish();
  }

 private:
  using Walkers = WalkBuffers::Walkers;

  // Prefetches the bounds of a group's rows while the previous group walks.
  GNND_PREFETCHES void PrefetchRows(uint32_t begin) const {
    const uint32_t end = begin + std::min(buffers_->rows_per_group, task_->num_dst - begin);
    for (uint32_t row = begin; row < end; ++row) {
      Prefetch(level_, graph_indptr_ + task_->dst[row]);
    }
  }

  void Start(uint32_t begin, uint32_t rows) {
    std::fill_n(buffers_->visits.begin(), size_t{rows} * buffers_->visits_per_row, kNoVisit);
    Walkers& walkers = *buffers_->walkers;
    walking_ = 0;
    for (uint32_t r = 0; r < rows; ++r) {
      const uint32_t node = task_->dst[begin + r];
      for (uint32_t w = 0; w < walk_.walks; ++w) {
        walkers.at[walking_] = node;
        walkers.start[walking_] = node;
        walkers.block[walking_] = WalkBlock(w, walk_.length, 0);
        walkers.visit_at[walking_] = r * buffers_->visits_per_row + w * walk_.length;
        ++walking_;
      }
    }
  }

  // Draws the next edge of every walker whose node has neighbours, and drops the others. kSkips:
  // some nodes do without some of theirs.
  template <bool kSkips>
  void Draw() {
    Walkers& walkers = *buffers_->walkers;
    loops_.draw(task_->stream, walkers.start, walkers.block, walking_,
                {walkers.low, walkers.high, walkers.end});
    uint32_t kept = 0;
    for (uint32_t i = 0; i < walking_; ++i) {
      const uint64_t start = graph_indptr_[walkers.at[i]];
      uint64_t degree = graph_indptr_[walkers.at[i] + 1] - start;
      std::span<const uint64_t> absent;
      if constexpr (kSkips) {
        const uint32_t row = buffers_->skipping.Find(task_->dst, walkers.at[i]);
        if (row != kNoVisit) absent = task_->skips.of(row);
        degree -= absent.size();
      }
      uint64_t position = WalkPosition(walkers.low[i], walkers.high[i], degree);
      if constexpr (kSkips) position = RowSkips::PlaceOf(absent, position);
      const uint64_t edge = start + position;
      Prefetch(level_, graph_indices_ + edge);
      walkers.start[kept] = walkers.start[i];
      walkers.block[kept] = walkers.block[i];
      walkers.visit_at[kept] = walkers.visit_at[i];
      walkers.end[kept] = walkers.end[i];
      walkers.edge_at[kept] = edge;
      kept += degree == 0 ? 0 : 1;
    }
    walking_ = kept;
  }

  void Move() {
    Walkers& walkers = *buffers_->walkers;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < walking_; ++i) {
      const uint32_t node = graph_indices_[walkers.edge_at[i]];
      Prefetch(level_, graph_indptr_ + node);
      buffers_->visits[walkers.visit_at[i]] = node;
      walkers.at[kept] = node;
      walkers.start[kept] = walkers.start[i];
      walkers.block[kept] = walkers.block[i] + 1;
      walkers.visit_at[kept] = walkers.visit_at[i] + 1;
      kept += walkers.end[i] < end_below_ ? 0 : 1;
    }
    walking_ = kept;
  }

  void Choose(uint32_t begin, uint32_t r) {
    uint32_t* ids = ids_.Room(fanout_);
    const uint32_t* visits = buffers_->visits.data() + size_t{r} * buffers_->visits_per_row;
    float* counts = task_->weight + chosen_;
    const uint32_t made = buffers_->visits_per_row;
    uint32_t size = made <= kMaxPairVisits
                        ? loops_.top(visits, made, fanout_, ids, counts)
                        : buffers_->counter.Top(visits, made, fanout_, ids, counts);
    if (task_->skips.after) size = DropSkipped(begin + r, ids, counts, size);
    ids_.Append(size);
    chosen_ += size;
    task_->indptr[begin + r + 1] = chosen_;
  }

  // Drops the neighbours that the row does without from those it chose; returns how many are left.
  uint32_t DropSkipped(uint32_t row, uint32_t* ids, float* counts, uint32_t size) const {
    const uint32_t* neighbours = graph_indices_ + graph_indptr_[task_->dst[row]];
    uint32_t kept = 0;
    for (uint32_t k = 0; k < size; ++k) {
      const auto is_chosen = [&](uint64_t place) { return neighbours[place] == ids[k]; };
      const std::span<const uint64_t> skipped = task_->skips.of(row);
      if (std::any_of(skipped.begin(), skipped.end(), is_chosen)) continue;
      ids[kept] = ids[k];
      counts[kept++] = counts[k];
    }
    return kept;
  }

  const uint64_t* graph_indptr_;
  const uint32_t* graph_indices_;
  PrefetchLevel level_;
  IdStream<Table> ids_;
  WalkBuffers* buffers_;
  const WalkLoops& loops_;
  WalkOptions walk_;
  uint32_t end_below_;
  uint32_t fanout_;
  HopTask* task_;
  uint32_t walking_ = 0;  // number of walkers that still walk
  uint32_t chosen_ = 0;   // edges chosen so far
};

}  // namespace gnnd
