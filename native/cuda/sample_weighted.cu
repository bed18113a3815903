#include "core/draw/alias.h"
#include "cuda/operators.h"
#include "cuda/rows.cuh"

// Hops that draw by edge weight, the twin of core/sample/weighted.h: a warp draws a row's
// candidates, 32 at a time, and keeps the first that differ. Rows with too few are listed and
// finished by scanning their table's mass. There are few such rows, and a scan needs as much memory
// as the row, so a handful of warps do them one after the other.

namespace gnnd::cuda {
namespace {

constexpr uint64_t kSlotMass = uint64_t{1} << 32;
constexpr uint64_t kScanWords = uint64_t{1} << 22;  // for all scans at a time, or one long row
constexpr uint64_t kMaxScanWarps = 64;

struct WeightedWork {
  uint64_t* picks;  // [max_rows][fanout], positions
  uint32_t* slow;   // indices of rows to scan
  uint64_t* mass;   // [warps][max_degree]
};

uint64_t ScanWarps(uint64_t max_degree) {
  const uint64_t fit = max_degree == 0 ? kMaxScanWarps : kScanWords / max_degree;
  return fit < 1 ? 1 : fit > kMaxScanWarps ? kMaxScanWarps : fit;
}

// Takes the entries of a short row that have weight, in row order.
GNND_DEVICE uint32_t TakeShort(const AliasEntry* entries, uint32_t degree, uint64_t* picks) {
  uint32_t picked = 0;
  for (uint32_t from = 0; from < degree; from += kWarpLanes) {
    const uint32_t position = from + Lane();
    const bool takes = position < degree && entries[position].threshold != 0;
    const uint32_t takers = Ballot(kFullMask, takes);
    if (takes) picks[picked + CountBits(takers & ((1U << Lane()) - 1))] = position;
    picked += CountBits(takers);
  }
  return picked;
}

// Makes the first draws, without replacement keeping only distinct ones; returns how many it found.
GNND_DEVICE uint32_t DrawRow(const DrawStream& stream, const RowView& row,
                             const AliasEntry* entries, uint32_t fanout, bool replace,
                             uint64_t* picks) {
  const uint32_t draws = replace ? fanout : kMaxWeightedRounds * WeightedCandidates(fanout);
  uint32_t picked = 0;
  for (uint32_t from = 0; from < draws && picked < fanout; from += kWarpLanes) {
    const uint32_t j = from + Lane();
    bool takes = j < draws;
    uint64_t pick = uint64_t{1} << 63 | Lane();  // differs from all picks
    if (takes) {
      const AliasDraw draw = AliasDrawAt(stream, row.node, row.degree, j);
      pick = ChosenOf(entries[draw.slot], static_cast<uint32_t>(draw.slot), draw.word);
    }
    for (uint32_t k = 0; !replace && takes && k < picked; ++k) takes = picks[k] != pick;
    const uint32_t same = MatchAny(kFullMask, pick);
    if (!replace && (same & ((1U << Lane()) - 1)) != 0) takes = false;
    const uint32_t takers = Ballot(kFullMask, takes);
    const uint32_t k = picked + CountBits(takers & ((1U << Lane()) - 1));
    if (takes && k < fanout) picks[k] = pick;
    picked += CountBits(takers);
    WarpSync(kFullMask);
  }
  return picked < fanout ? picked : fanout;
}

GNND_KERNEL PickWeighted(HopTask task, WeightedWork work, DrawStream stream, uint32_t fanout,
                         bool replace) {
  const uint32_t rows = RowsOf(task);
  for (uint64_t i = GridThread() / kWarpLanes; i < rows; i += GridThreads() / kWarpLanes) {
    const auto number = static_cast<uint32_t>(i);
    const RowView row = UnsizedRow(task, number);
    const AliasEntry* const entries = task.graph.alias + row.start;
    uint64_t* const picks = work.picks + i * fanout;
    uint32_t picked = 0;
    if (!replace && row.degree <= fanout) {
      picked = TakeShort(entries, static_cast<uint32_t>(row.degree), picks);
    } else if (row.degree > 0 && !IsWeightless(entries[0], 0)) {
      picked = DrawRow(stream, row, entries, fanout, replace, picks);
      if (picked < fanout && Lane() == 0) {
        work.slow[AtomicAdd(&task.buffers.state->num_slow, 1)] = number;
      }
    }
    if (Lane() == 0) LeaveSize(task, number, picked);
  }
}

// The first position at which the mass, added up in row order, exceeds `target`.
GNND_DEVICE uint32_t PositionOf(const uint64_t* mass, uint64_t degree, uint64_t target) {
  uint64_t before = 0;
  for (uint64_t from = 0;; from += kWarpLanes) {
    const uint64_t position = from + Lane();
    uint64_t sum = position < degree ? mass[position] : 0;
    GNND_UNROLL
    for (uint32_t distance = 1; distance < kWarpLanes; distance *= 2) {
      const uint64_t below = ShuffleUp(kFullMask, sum, distance);
      if (Lane() >= distance) sum += below;
    }
    const uint32_t beyond = Ballot(kFullMask, before + sum > target);
    if (beyond != 0) return static_cast<uint32_t>(from) + CountBits((beyond & (0U - beyond)) - 1);
    before += Shuffle(kFullMask, sum, kWarpLanes - 1);
  }
}

GNND_DEVICE void MassOf(const AliasEntry* entries, uint64_t degree, uint64_t* mass) {
  for (uint64_t slot = Lane(); slot < degree; slot += kWarpLanes) mass[slot] = 0;
  WarpSync(kFullMask);
  for (uint64_t slot = Lane(); slot < degree; slot += kWarpLanes) {
    const AliasEntry entry = entries[slot];
    const bool full = entry.alias == slot;
    AtomicAdd(mass + slot, full ? kSlotMass : uint64_t{entry.threshold});
    if (!full) AtomicAdd(mass + entry.alias, kSlotMass - entry.threshold);
  }
  WarpSync(kFullMask);
}

// Blocks of one warp.
GNND_KERNEL ScanSlowRows(HopTask task, WeightedWork work, DrawStream stream, uint32_t fanout,
                         uint64_t max_degree) {
  const uint32_t slow = task.buffers.state->num_slow;
  uint64_t* const mass = work.mass + BlockIndex() * max_degree;
  for (uint32_t s = BlockIndex(); s < slow; s += Blocks()) {
    const uint32_t number = work.slow[s];
    const RowView row = UnsizedRow(task, number);
    uint64_t* const picks = work.picks + uint64_t{number} * fanout;
    uint32_t picked = CountedSize{}.Of(task, number);
    WarpSync(kFullMask);
    MassOf(task.graph.alias + row.start, row.degree, mass);
    uint64_t left = row.degree * kSlotMass;
    for (uint32_t k = 0; k < picked; ++k) left -= mass[picks[k]];
    WarpSync(kFullMask);
    for (uint32_t k = Lane(); k < picked; k += kWarpLanes) mass[picks[k]] = 0;
    WarpSync(kFullMask);
    for (uint32_t m = 0; picked < fanout && left > 0; ++m) {
      const PhiloxWords words = RowWords(stream, row.node, kScanBlock + m / 2);
      const uint32_t at = m % 2 * 2;
      const uint64_t target = WideBoundedDraw(WordAt(words, at), WordAt(words, at + 1), left);
      const uint32_t position = PositionOf(mass, row.degree, target);
      left -= mass[position];
      WarpSync(kFullMask);
      if (Lane() == 0) {
        picks[picked] = position;
        mass[position] = 0;
      }
      ++picked;
      WarpSync(kFullMask);
    }
    if (Lane() == 0) LeaveSize(task, number, picked);
  }
}

template <typename Map>
GNND_KERNEL TakePicks(Map map, HopTask task, const uint64_t* picks, uint32_t fanout) {
  const uint32_t rows = RowsOf(task);
  for (uint64_t i = GridThread() / kWarpLanes; i < rows; i += GridThreads() / kWarpLanes) {
    const RowView row = RowAt(task, static_cast<uint32_t>(i));
    for (uint32_t k = Lane(); k < row.size; k += kWarpLanes) {
      Take(task, map, row, k, picks[i * fanout + k]);
    }
  }
}

}  // namespace

uint64_t WeightedWords(const WorkShape& shape) {
  const uint64_t picks = uint64_t{shape.max_rows} * shape.max_fanout;
  const uint64_t slow = (uint64_t{shape.max_rows} + 1) / 2;
  return picks + slow + ScanWarps(shape.max_degree) * shape.max_degree;
}

void SampleWeighted(const Queue& queue, const HopTask& task, const DrawStream& stream,
                    uint32_t fanout, bool replace, uint64_t max_degree) {
  uint64_t* const picks = task.buffers.work;
  uint64_t* const slow = picks + uint64_t{task.out.max_dst} * fanout;
  const WeightedWork work{picks, reinterpret_cast<uint32_t*>(slow),
                          slow + (uint64_t{task.out.max_dst} + 1) / 2};
  const uint64_t threads = uint64_t{task.out.max_dst} * kWarpLanes;
  LaunchFor(queue, threads, PickWeighted, task, work, stream, fanout, replace);
  if (!replace) {
    Launch(queue, ScanSlowRows, static_cast<uint32_t>(ScanWarps(max_degree)), kWarpLanes, 0, task,
           work, stream, fanout, max_degree);
  }
  ScanRows(queue, task, CountedSize{});
  WithMap(task.table, [&]<typename Map>(const Map& map) {
    LaunchFor(queue, threads, TakePicks<Map>, map, task, work.picks, fanout);
    Relabel(queue, map, task);
  });
}

}  // namespace gnnd::cuda
