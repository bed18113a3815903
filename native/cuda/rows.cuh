#pragma once

#include <cstdint>

#include "cuda/relabel.cuh"

// Common parts of all strategies' hops: rows, their sizes, and the row of an edge.

namespace gnnd::cuda {

// A row to be drawn.
struct RowView {
  uint32_t node = 0;
  uint64_t start = 0;  // offset in the graph's indices
  uint64_t degree = 0;
  uint32_t edge = 0;  // its first edge, among those that the hop adds
  uint32_t size = 0;  // number of edges that it takes
};

// The hop's rows; 0 if they exceed the task's room, which the scan of sizes turns into an error.
GNND_DEVICE uint32_t RowsOf(const HopTask& task) {
  const SampleState& state = *task.buffers.state;
  const HopCounts& counts = state.hops[task.hop];
  if (state.error != 0 || counts.num_dst > task.out.max_dst) return 0;
  return counts.num_dst - counts.first_row;
}
GNND_DEVICE uint32_t EdgesOf(const HopTask& task) {
  const SampleState& state = *task.buffers.state;
  if (state.error != 0) return 0;
  return state.hops[task.hop].num_edges - state.hops[task.hop].first_edge;
}

// Row i of those that the hop draws, before sizes are scanned.
GNND_DEVICE RowView UnsizedRow(const HopTask& task, uint32_t i) {
  RowView row;
  row.node = task.buffers.nodes[task.buffers.state->hops[task.hop].first_row + i];
  row.start = LoadConst(task.graph.indptr + row.node);
  row.degree = LoadConst(task.graph.indptr + row.node + 1) - row.start;
  return row;
}
// Row i after sizes were scanned.
GNND_DEVICE RowView RowAt(const HopTask& task, uint32_t i) {
  const HopCounts& counts = task.buffers.state->hops[task.hop];
  RowView row = UnsizedRow(task, i);
  const uint32_t* const bounds = task.out.indptr + counts.first_row + i;
  row.edge = bounds[0] - counts.first_edge;
  row.size = bounds[1] - bounds[0];
  return row;
}

// The last of `count` rows that begins at or before an edge; bounds[0] <= edge < bounds[count].
GNND_DEVICE uint32_t RowOfEdge(const uint32_t* bounds, uint32_t count, uint32_t edge) {
  uint32_t low = 0;
  uint32_t high = count;
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    if (bounds[middle] <= edge) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// Writes neighbour `position` of a row as its edge `k`, and marks it.
template <typename Map>
GNND_DEVICE void Take(const HopTask& task, const Map& map, const RowView& row, uint32_t k,
                      uint64_t position) {
  const uint32_t i = row.edge + k;
  const uint32_t id = LoadConst(task.graph.indices + row.start + position);
  task.buffers.ids[i] = id;
  MarkPlace(map, id, task.buffers.state->hops[task.hop].num_dst + i);
}

// Scan: turns rows' sizes into the block's indptr. Size is a struct with GNND_DEVICE uint32_t
// Of(const HopTask&, uint32_t i) const.
template <typename Size>
struct RowSizes {
  HopTask task;
  Size size;

  GNND_DEVICE uint32_t Count() const { return RowsOf(task); }
  GNND_DEVICE uint32_t Value(uint32_t i) const { return size.Of(task, i); }
  GNND_DEVICE void Finish(uint32_t total) const {
    SampleState* const state = task.buffers.state;
    HopCounts& counts = state->hops[task.hop];
    if (counts.first_row == 0) task.out.indptr[0] = 0;
    // Places of edges follow those of nodes, and both are 32-bit.
    const bool fits = total <= task.buffers.max_edges &&
                      total <= task.out.max_edges - counts.first_edge &&
                      total < 0xFFFFFFFF - counts.num_dst && counts.num_dst <= task.out.max_dst;
    if (!fits) state->error |= kSampleTooLarge;
    counts.num_edges = counts.first_edge + (state->error == 0 ? total : 0);
    state->num_slow = 0;
  }
  GNND_DEVICE void Put(uint32_t i, uint32_t before, uint32_t value) const {
    const HopCounts& counts = task.buffers.state->hops[task.hop];
    task.out.indptr[counts.first_row + i + 1] = counts.first_edge + before + value;
  }
};

template <typename Size>
void ScanRows(const Queue& queue, const HopTask& task, const Size& size) {
  Scan(queue, task.out.max_dst, RowSizes<Size>{task, size}, task.buffers.tiles);
}

// Sizes that a kernel left in the place of the row's end. One thread both reads and overwrites that
// place.
struct CountedSize {
  GNND_DEVICE uint32_t Of(const HopTask& task, uint32_t i) const {
    return task.out.indptr[task.buffers.state->hops[task.hop].first_row + i + 1];
  }
};
GNND_DEVICE void LeaveSize(const HopTask& task, uint32_t i, uint32_t size) {
  task.out.indptr[task.buffers.state->hops[task.hop].first_row + i + 1] = size;
}

}  // namespace gnnd::cuda
