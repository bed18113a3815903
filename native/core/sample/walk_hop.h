#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/sample/expand.h"
#include "core/sample/walk.h"

namespace gnnd {

// What the walks of a group of rows share. Sized once.
class WalkBuffers {
 public:
  // In lock-step: enough to keep the memory busy, few enough to stay in the L1 cache.
  static constexpr uint32_t kMaxWalkers = 256;

  struct Walker {
    uint32_t at;     // present node
    uint32_t row;    // of the group
    uint32_t block;  // of its first step
  };

  // `walk` of a sampler that walks not at all may have any values.
  WalkBuffers(bool used, const WalkOptions& walk)
      : options(walk),
        rows_per_group(std::max(kMaxWalkers / std::max(walk.walks, uint32_t{1}), uint32_t{1})),
        visits_per_row(used ? walk.walks * walk.length : 0),
        counter(visits_per_row),
        visits(size_t{rows_per_group} * visits_per_row) {}

  uint64_t bytes() const { return visits.size() * sizeof(uint32_t) + counter.bytes(); }

  WalkOptions options;
  uint32_t rows_per_group;
  uint32_t visits_per_row;
  VisitCounter counter;
  std::vector<uint32_t> visits;  // of each row of the group, at block w * length + s
  Walker walkers[kMaxWalkers];   // that still walk
  uint64_t edge_at[kMaxWalkers];
  uint32_t end_words[kMaxWalkers];
};

// Expands one hop by random walks. All walkers of a group take a step together, in two passes, each
// of which asks for what the next one reads.
template <typename Table>
class WalkHop {
 public:
  WalkHop(const TopologyView& topology, Table* table, ExpandBuffers* ring, WalkBuffers* buffers,
          uint32_t fanout, HopTask* task)
      : graph_indptr_(topology.indptr.data()),
        graph_indices_(topology.indices.data()),
        table_(table),
        filling_(&ring->slots[0]),
        waiting_(&ring->slots[1]),
        buffers_(buffers),
        walk_(buffers->options),
        end_below_(RestartThreshold(buffers->options.restart_prob)),
        fanout_(std::min(fanout, buffers->visits_per_row)),
        task_(task) {}

  void Run() {
    filling_->size = 0;
    waiting_->size = 0;
    chosen_ = task_->num_edges;
    for (uint32_t begin = task_->first_row; begin < task_->num_dst;) {
      const uint32_t rows = std::min(buffers_->rows_per_group, task_->num_dst - begin);
      Start(begin, rows);
      for (uint32_t step = 0; step < walk_.length && walking_ > 0; ++step) {
        Draw(begin, step);
        Move(step);
      }
      for (uint32_t r = 0; r < rows; ++r) Choose(begin, r);
      begin += rows;
    }
    Flush();
    Flush();
  }

 private:
  using Slot = ExpandBuffers::Slot;
  using Walker = WalkBuffers::Walker;

  void Start(uint32_t begin, uint32_t rows) {
    std::fill_n(buffers_->visits.begin(), size_t{rows} * buffers_->visits_per_row, kNoVisit);
    walking_ = 0;
    for (uint32_t r = 0; r < rows; ++r) {
      const uint32_t node = task_->nodes[begin + r];
      __builtin_prefetch(graph_indptr_ + node);
      for (uint32_t w = 0; w < walk_.walks; ++w) {
        buffers_->walkers[walking_++] = {node, r, w * walk_.length};
      }
    }
  }

  // Walkers that have somewhere to go draw where.
  void Draw(uint32_t begin, uint32_t step) {
    Walker* walkers = buffers_->walkers;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < walking_; ++i) {
      const Walker walker = walkers[i];
      const uint64_t start = graph_indptr_[walker.at];
      const uint64_t degree = graph_indptr_[walker.at + 1] - start;
      const WalkStep drawn =
          WalkStepOf(task_->stream, task_->nodes[begin + walker.row], walker.block + step, degree);
      walkers[kept] = walker;
      buffers_->edge_at[kept] = start + drawn.position;
      buffers_->end_words[kept] = drawn.end_word;
      __builtin_prefetch(graph_indices_ + start + drawn.position);
      kept += degree == 0 ? 0 : 1;
    }
    walking_ = kept;
  }

  void Move(uint32_t step) {
    Walker* walkers = buffers_->walkers;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < walking_; ++i) {
      Walker walker = walkers[i];
      walker.at = graph_indices_[buffers_->edge_at[i]];
      buffers_->visits[walker.row * buffers_->visits_per_row + walker.block + step] = walker.at;
      __builtin_prefetch(graph_indptr_ + walker.at);
      walkers[kept] = walker;
      kept += buffers_->end_words[i] < end_below_ ? 0 : 1;
    }
    walking_ = kept;
  }

  void Choose(uint32_t begin, uint32_t r) {
    if (filling_->size + fanout_ > filling_->ids.size()) Flush();
    uint32_t* ids = filling_->ids.data() + filling_->size;
    const uint32_t* visits = buffers_->visits.data() + size_t{r} * buffers_->visits_per_row;
    const uint32_t size = buffers_->counter.Top(visits, buffers_->visits_per_row, fanout_, ids,
                                                task_->weight + chosen_);
    for (uint32_t k = 0; k < size; ++k) table_->Prefetch(ids[k]);
    filling_->size += size;
    chosen_ += size;
    task_->indptr[begin + r + 1] = chosen_;
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
  WalkBuffers* buffers_;
  WalkOptions walk_;
  uint32_t end_below_;
  uint32_t fanout_;
  HopTask* task_;
  uint32_t walking_ = 0;  // walkers
  uint32_t chosen_ = 0;   // edges
};

}  // namespace gnnd
