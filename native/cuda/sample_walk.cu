#include "core/draw/walk.h"
#include "cuda/operators.h"
#include "cuda/rows.cuh"

// Hops to the nodes that random walks visit most, the twin of core/sample/walk.h: one thread per
// walk, then one warp per row that counts and orders its visits.

namespace gnnd::cuda {
namespace {

constexpr uint32_t kNoVisit = 0xFFFFFFFF;
// Key of a visit: number of visits << 16 | this - its place. The keys in a row are distinct.
constexpr uint32_t kPlaceMask = 0xFFFF;

struct WalkWork {
  uint32_t* visits;  // [max_rows][visits of a row], in the order of (walk, step)
  uint32_t* keys;    // like visits; 0 except at a node's first visit
  uint32_t* nodes;   // [max_rows][most], most visited first
  uint32_t* counts;  // like nodes
  uint32_t row_visits;
  uint32_t most;
};

GNND_KERNEL WalkRows(HopTask task, WalkWork work, DrawStream stream, WalkShape walk) {
  const uint64_t walks = uint64_t{RowsOf(task)} * walk.walks;
  for (uint64_t i = GridThread(); i < walks; i += GridThreads()) {
    const auto number = static_cast<uint32_t>(i / walk.walks);
    const auto w = static_cast<uint32_t>(i % walk.walks);
    RowView at = UnsizedRow(task, number);
    const uint32_t from = at.node;
    uint32_t* const visits = work.visits + i * walk.length;
    bool walking = true;
    for (uint32_t s = 0; s < walk.length; ++s) {
      uint32_t visit = kNoVisit;
      if (walking && at.degree > 0) {
        const PhiloxWords words = RowWords(stream, from, WalkBlock(w, walk.length, s));
        const uint64_t position = WalkPosition(words.word[0], words.word[1], at.degree);
        visit = LoadConst(task.graph.indices + at.start + position);
        walking = words.word[2] >= walk.end_below;
        at.start = LoadConst(task.graph.indptr + visit);
        at.degree = LoadConst(task.graph.indptr + visit + 1) - at.start;
      } else {
        walking = false;
      }
      visits[s] = visit;
    }
  }
}

GNND_DEVICE uint32_t SumOfLanes(uint32_t value) {
  GNND_UNROLL
  for (uint32_t bits = 1; bits < kWarpLanes; bits *= 2) {
    value += ShuffleXor(kFullMask, value, bits);
  }
  return value;
}

GNND_KERNEL OrderVisits(HopTask task, WalkWork work) {
  const uint32_t rows = RowsOf(task);
  for (uint64_t r = GridThread() / kWarpLanes; r < rows; r += GridThreads() / kWarpLanes) {
    const uint32_t* const visits = work.visits + r * work.row_visits;
    uint32_t* const keys = work.keys + r * work.row_visits;
    uint32_t distinct = 0;
    for (uint32_t i = Lane(); i < work.row_visits; i += kWarpLanes) {
      uint32_t count = 0;
      bool first = visits[i] != kNoVisit;
      for (uint32_t j = 0; j < work.row_visits; ++j) {
        const bool same = visits[j] == visits[i];
        count += same ? 1 : 0;
        if (same && j < i) first = false;
      }
      keys[i] = first ? count << 16 | (kPlaceMask - i) : 0;
      distinct += first ? 1 : 0;
    }
    distinct = SumOfLanes(distinct);
    WarpSync(kFullMask);
    for (uint32_t i = Lane(); i < work.row_visits; i += kWarpLanes) {
      uint32_t place = 0;
      for (uint32_t j = 0; j < work.row_visits; ++j) place += keys[j] > keys[i] ? 1 : 0;
      if (keys[i] == 0 || place >= work.most) continue;
      work.nodes[r * work.most + place] = visits[i];
      work.counts[r * work.most + place] = keys[i] >> 16;
    }
    if (Lane() == 0) {
      LeaveSize(task, static_cast<uint32_t>(r), distinct < work.most ? distinct : work.most);
    }
  }
}

template <typename Map>
GNND_KERNEL TakeVisits(Map map, HopTask task, WalkWork work) {
  const uint32_t edges = EdgesOf(task);
  const HopCounts counts = task.buffers.state->hops[task.hop];
  const uint32_t* const bounds = task.out.indptr + counts.first_row;
  for (uint64_t e = GridThread(); e < edges; e += GridThreads()) {
    const auto edge = static_cast<uint32_t>(counts.first_edge + e);
    const uint32_t i = RowOfEdge(bounds, counts.num_dst - counts.first_row, edge);
    const uint64_t from = uint64_t{i} * work.most + (edge - bounds[i]);
    const uint32_t id = work.nodes[from];
    task.buffers.ids[e] = id;
    MarkPlace(map, id, counts.num_dst + static_cast<uint32_t>(e));
    task.out.weight[edge] = static_cast<float>(work.counts[from]);
  }
}

}  // namespace

uint64_t WalkWords(const WorkShape& shape) {
  const uint64_t most = shape.max_fanout < shape.walk_visits ? shape.max_fanout : shape.walk_visits;
  return uint64_t{shape.max_rows} * (shape.walk_visits + most);
}

void SampleWalk(const Queue& queue, const HopTask& task, const DrawStream& stream, uint32_t fanout,
                const WalkShape& walk) {
  const uint32_t visits = walk.walks * walk.length;
  const uint32_t most = fanout < visits ? fanout : visits;
  const uint64_t rows = task.out.max_dst;
  auto* const begin = reinterpret_cast<uint32_t*>(task.buffers.work);
  const WalkWork work{begin,
                      begin + rows * visits,
                      begin + 2 * rows * visits,
                      begin + rows * (2 * visits + most),
                      visits,
                      most};
  LaunchFor(queue, rows * walk.walks, WalkRows, task, work, stream, walk);
  LaunchFor(queue, rows * kWarpLanes, OrderVisits, task, work);
  ScanRows(queue, task, CountedSize{});
  WithMap(task.table, [&]<typename Map>(const Map& map) {
    LaunchFor(queue, task.buffers.max_edges, TakeVisits<Map>, map, task, work);
    Relabel(queue, map, task);
  });
}

}  // namespace gnnd::cuda
