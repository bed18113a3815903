#include "core/draw/floyd.h"
#include "core/draw/gcn.h"
#include "core/draw/permutation.h"
#include "cuda/operators.h"
#include "cuda/rows.cuh"

// Seeds, and hops that draw uniformly, take whole rows, or filter them (LABOR): the twins of
// core/sample, with the same picks in the same order.

namespace gnnd::cuda {
namespace {

GNND_KERNEL BeginState(SampleState* state) {
  for (uint32_t h = ThreadInBlock(); h <= kMaxSampleHops; h += BlockThreads()) {
    state->hops[h] = {0, 0, 0, 0};
  }
  if (ThreadInBlock() == 0) state->error = state->num_slow = 0;
}

template <typename Map>
GNND_KERNEL MarkSeeds(Map map, SampleBuffers buffers, const uint32_t* seeds, uint32_t num_seeds,
                      uint32_t num_nodes) {
  for (uint64_t i = GridThread(); i < num_seeds; i += GridThreads()) {
    const uint32_t seed = seeds[i];
    if (seed >= num_nodes) {
      AtomicOr(&buffers.state->error, kSeedUnknown);
      continue;
    }
    buffers.ids[i] = seed;
    MarkPlace(map, seed, static_cast<uint32_t>(i));
  }
}

GNND_KERNEL DrawSeeds(PhiloxKey key, uint32_t epoch, uint32_t n, uint32_t first, uint32_t count,
                      const uint32_t* train_nodes, uint32_t* seeds) {
  for (uint64_t i = GridThread(); i < count; i += GridThreads()) {
    seeds[i] = train_nodes[PermutedIndex(key, epoch, n, first + static_cast<uint32_t>(i))];
  }
}

struct UniformSize {
  uint32_t fanout;
  bool replace;

  GNND_DEVICE uint32_t Of(const HopTask& task, uint32_t i) const {
    const uint64_t degree = UnsizedRow(task, i).degree;
    if (replace) return degree == 0 ? 0 : fanout;
    return degree < fanout ? static_cast<uint32_t>(degree) : fanout;
  }
};

// Draws of a row that has more neighbours than it takes, one lane per draw: if all differ they are
// the picks (core/draw/floyd.h); otherwise repeats are resolved in order. `taken` holds the row's
// earlier picks if they exceed a group's lanes.
template <uint32_t kWidth>
GNND_DEVICE uint64_t FloydPick(const DrawStream& stream, const RowView& row, uint32_t fanout,
                               uint32_t from, const uint64_t* taken) {
  const uint32_t mask = GroupMask(kWidth);
  const uint32_t lane = Lane() % kWidth;
  const uint32_t j = from + lane;
  const bool drawing = j < fanout;
  const uint64_t last = row.degree - fanout + j;  // replaces a repeated draw
  // Lanes without a draw get values that differ from all.
  const uint64_t drawn =
      drawing ? UniformDrawAt(stream, row.node, WordsPerDraw(row.degree), j, last + 1)
              : uint64_t{1} << 63 | lane;
  uint64_t pick = drawn;
  for (uint32_t k = 0; drawing && k < from; ++k) {
    if (taken[k] == drawn) pick = last;
  }
  const uint32_t same = MatchAny(mask, drawn);
  const bool repeats = (same & ((1U << Lane()) - 1)) != 0 || pick != drawn;
  if (Ballot(mask, drawing && repeats) != 0) {
    for (uint32_t i = 0; i + 1 < kWidth; ++i) {
      const uint64_t earlier = Shuffle(mask, pick, i, kWidth);
      if (drawing && i < lane && earlier == drawn) pick = last;
    }
  }
  return pick;
}

template <uint32_t kWidth, typename Map>
GNND_KERNEL PickUniform(Map map, HopTask task, DrawStream stream, uint32_t fanout, bool replace) {
  const uint32_t rows = RowsOf(task);
  const uint32_t lane = Lane() % kWidth;
  for (uint64_t i = GridThread() / kWidth; i < rows; i += GridThreads() / kWidth) {
    const RowView row = RowAt(task, static_cast<uint32_t>(i));
    const bool draws = !replace && row.degree > fanout;
    uint64_t* const taken = task.buffers.work + row.edge;
    for (uint32_t from = 0; from < row.size; from += kWidth) {
      const uint32_t k = from + lane;
      uint64_t position = k;
      if (draws) {
        position = FloydPick<kWidth>(stream, row, fanout, from, taken);
        if (fanout > kWidth) {
          if (k < row.size) taken[k] = position;
          WarpSync(GroupMask(kWidth));
        }
      } else if (replace && k < row.size) {
        position = UniformDrawAt(stream, row.node, WordsPerDraw(row.degree), k, row.degree);
      }
      if (k < row.size) Take(task, map, row, k, position);
    }
  }
}

struct FullSize {
  GNND_DEVICE uint32_t Of(const HopTask& task, uint32_t i) const {
    const uint64_t degree = UnsizedRow(task, i).degree;
    return degree < 0xFFFFFFFF ? static_cast<uint32_t>(degree) : 0xFFFFFFFF;
  }
};

// Parallel over edges, not rows, because one row may have most of the edges.
template <typename Map>
GNND_KERNEL TakeAll(Map map, HopTask task) {
  const uint32_t edges = EdgesOf(task);
  const HopCounts counts = task.buffers.state->hops[task.hop];
  const uint32_t* const bounds = task.out.indptr + counts.first_row;
  for (uint64_t e = GridThread(); e < edges; e += GridThreads()) {
    const auto edge = static_cast<uint32_t>(counts.first_edge + e);
    const uint32_t i = RowOfEdge(bounds, counts.num_dst - counts.first_row, edge);
    const RowView row = RowAt(task, i);
    Take(task, map, row, edge - bounds[i], edge - bounds[i]);
  }
}

// Decides for each neighbour of a row whether it is taken.
struct LaborFilter {
  LaborKeys keys;
  uint32_t fanout;
  uint32_t most;

  GNND_DEVICE bool Takes(const HopTask& task, const RowView& row, uint64_t position) const {
    if (row.degree <= fanout) return true;
    const uint32_t node = task.graph.indices[row.start + position];
    return LaborNumber(keys, node) < LaborThreshold(fanout, row.degree);
  }
  GNND_DEVICE float Weight(const RowView& row) const { return LaborWeight(fanout, row.degree); }
};
// Takes entries of weight above 0.
struct WeightFilter {
  static constexpr uint32_t most = 0xFFFFFFFF;

  GNND_DEVICE bool Takes(const HopTask& task, const RowView& row, uint64_t position) const {
    return task.graph.alias[row.start + position].threshold != 0;
  }
  GNND_DEVICE float Weight(const RowView&) const { return 1.0F; }
};

// One warp per row. Counts the entries that the filter takes, or takes them.
template <bool kTakes, typename Filter, typename Map>
GNND_KERNEL FilterRows(Map map, HopTask task, Filter filter) {
  const uint32_t rows = RowsOf(task);
  for (uint64_t i = GridThread() / kWarpLanes; i < rows; i += GridThreads() / kWarpLanes) {
    const auto number = static_cast<uint32_t>(i);
    const RowView row = kTakes ? RowAt(task, number) : UnsizedRow(task, number);
    uint32_t found = 0;
    for (uint64_t from = 0; from < row.degree && found < filter.most; from += kWarpLanes) {
      const uint64_t position = from + Lane();
      const bool takes = position < row.degree && filter.Takes(task, row, position);
      const uint32_t takers = Ballot(kFullMask, takes);
      const uint32_t k = found + CountBits(takers & ((1U << Lane()) - 1));
      if constexpr (kTakes) {
        if (takes && k < filter.most) {
          Take(task, map, row, k, position);
          const HopCounts& counts = task.buffers.state->hops[task.hop];
          if (task.out.weight != nullptr) {
            task.out.weight[counts.first_edge + row.edge + k] = filter.Weight(row);
          }
        }
      }
      found += CountBits(takers);
    }
    if (!kTakes && Lane() == 0) {
      LeaveSize(task, number, found < filter.most ? found : filter.most);
    }
  }
}

template <typename Filter>
void SampleFiltered(const Queue& queue, const HopTask& task, const Filter& filter) {
  WithMap(task.table, [&]<typename Map>(const Map& map) {
    const uint64_t threads = uint64_t{task.out.max_dst} * kWarpLanes;
    LaunchFor(queue, threads, FilterRows<false, Filter, Map>, map, task, filter);
    ScanRows(queue, task, CountedSize{});
    LaunchFor(queue, threads, FilterRows<true, Filter, Map>, map, task, filter);
    Relabel(queue, map, task);
  });
}

GNND_KERNEL FillWeights(HopTask task) {
  const uint32_t edges = EdgesOf(task);
  const uint32_t first = task.buffers.state->hops[task.hop].first_edge;
  for (uint64_t e = GridThread(); e < edges; e += GridThreads()) task.out.weight[first + e] = 1.0F;
}

GNND_DEVICE double DegreeOf(const HopTask& task, uint32_t local) {
  const uint32_t node = task.buffers.nodes[local];
  return static_cast<double>(task.graph.indptr[node + 1] - task.graph.indptr[node]);
}

// Inverses of the nodes that the hop found; also of the seeds.
GNND_KERNEL GcnNodes(HopTask task) {
  const SampleState& state = *task.buffers.state;
  if (state.error != 0) return;
  const uint32_t first = task.hop == 0 ? 0 : state.hops[task.hop].num_dst;
  const uint32_t count = state.hops[task.hop + 1].num_dst;
  for (uint64_t i = first + GridThread(); i < count; i += GridThreads()) {
    task.buffers.inverses[i] = GcnInverse(DegreeOf(task, static_cast<uint32_t>(i)));
  }
}

GNND_KERNEL GcnEdges(HopTask task) {
  const SampleState& state = *task.buffers.state;
  if (state.error != 0) return;
  const HopCounts counts = state.hops[task.hop];
  const double* const inverses = task.buffers.inverses;
  for (uint64_t r = counts.first_row + GridThread(); r < counts.num_dst; r += GridThreads()) {
    task.out.self_weight[r] = GcnSelfWeight(DegreeOf(task, static_cast<uint32_t>(r)));
  }
  const uint32_t* const bounds = task.out.indptr + counts.first_row;
  for (uint64_t e = counts.first_edge + GridThread(); e < counts.num_edges; e += GridThreads()) {
    const uint32_t i =
        RowOfEdge(bounds, counts.num_dst - counts.first_row, static_cast<uint32_t>(e));
    const uint32_t r = counts.first_row + i;
    const double factor = GcnRowFactor(inverses[r], DegreeOf(task, r), bounds[i + 1] - bounds[i]);
    task.out.weight[e] = GcnWeight(inverses[task.out.src[e]], factor);
  }
}

template <uint32_t kWidth, typename Map>
void PickRows(const Queue& queue, const Map& map, const HopTask& task, const DrawStream& stream,
              uint32_t fanout, bool replace) {
  LaunchFor(queue, uint64_t{task.out.max_dst} * kWidth, PickUniform<kWidth, Map>, map, task, stream,
            fanout, replace);
}

}  // namespace

uint32_t TileWords(uint64_t n) { return TilesOf(n); }

void SeedsOfBatch(const Queue& queue, const BatchKey& key, const uint32_t* train_nodes,
                  uint32_t num_train_nodes, uint32_t first, uint32_t count, uint32_t* seeds) {
  LaunchFor(queue, count, DrawSeeds, KeyOf(key.random_seed), key.epoch, num_train_nodes, first,
            count, train_nodes, seeds);
}

void BeginSample(const Queue& queue, const HopTask& first, const uint32_t* seeds,
                 uint32_t num_seeds) {
  const SampleBuffers& buffers = first.buffers;
  Launch(queue, BeginState, 1, kWarpLanes, 0, buffers.state);
  WithMap(first.table, [&]<typename Map>(const Map& map) {
    LaunchFor(queue, num_seeds, MarkSeeds<Map>, map, buffers, seeds, num_seeds,
              first.graph.num_nodes);
    const NewNodes<Map> nodes{map, buffers, NewNodes<Map>::kSeeds, num_seeds, false};
    Scan(queue, num_seeds, nodes, buffers.tiles);
  });
}

uint64_t WorkWords(const WorkShape& shape) {
  const uint64_t picks = shape.max_fanout > kWarpLanes ? shape.max_edges : 0;
  const uint64_t weighted = shape.weighted ? WeightedWords(shape) : 0;
  const uint64_t walks = shape.walk_visits > 0 ? WalkWords(shape) : 0;
  const uint64_t most = picks > weighted ? picks : weighted;
  return most > walks ? most : walks;
}

void SampleUniform(const Queue& queue, const HopTask& task, const DrawStream& stream,
                   uint32_t fanout, bool replace) {
  ScanRows(queue, task, UniformSize{fanout, replace});
  WithMap(task.table, [&]<typename Map>(const Map& map) {
    if (fanout <= 8) {
      PickRows<8>(queue, map, task, stream, fanout, replace);
    } else if (fanout <= 16) {
      PickRows<16>(queue, map, task, stream, fanout, replace);
    } else {
      PickRows<32>(queue, map, task, stream, fanout, replace);
    }
    Relabel(queue, map, task);
  });
}

void SampleFull(const Queue& queue, const HopTask& task) {
  ScanRows(queue, task, FullSize{});
  WithMap(task.table, [&]<typename Map>(const Map& map) {
    LaunchFor(queue, task.buffers.max_edges, TakeAll<Map>, map, task);
    Relabel(queue, map, task);
  });
}

void SampleFullByWeight(const Queue& queue, const HopTask& task) {
  SampleFiltered(queue, task, WeightFilter{});
}

void SampleLabor(const Queue& queue, const HopTask& task, const LaborKeys& keys, uint32_t fanout) {
  SampleFiltered(queue, task, LaborFilter{keys, fanout, MaxLaborRow(fanout)});
}

void WeighAllOne(const Queue& queue, const HopTask& task) {
  LaunchFor(queue, task.buffers.max_edges, FillWeights, task);
}

void WeighGcn(const Queue& queue, const HopTask& task) {
  LaunchFor(queue, task.buffers.max_nodes, GcnNodes, task);
  const uint64_t most =
      task.buffers.max_edges > task.out.max_dst ? task.buffers.max_edges : task.out.max_dst;
  LaunchFor(queue, most, GcnEdges, task);
}

}  // namespace gnnd::cuda
