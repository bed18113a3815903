#include "cuda/operators.h"
#include "cuda/scan.cuh"

// The transpose of a block: its edges by source, those of a source in ascending order, as
// core/kernels/transpose.h sorts them. A stable radix sort without races for places: in each pass
// every tile counts its digits, a scan over (digit, tile) gives the starts, and within a tile the
// edges of a digit are numbered in order, 256 at a time.

namespace gnnd::cuda {
namespace {

constexpr uint32_t kDigitBits = 6;
constexpr uint32_t kDigits = 1U << kDigitBits;
constexpr uint32_t kWarps = kMaxThreads / kWarpLanes;

struct SortPass {
  const uint32_t* keys;    // sources
  const uint32_t* values;  // edges; null: 0, 1, 2 ..
  uint32_t* next_keys;
  uint32_t* next_values;
  uint32_t* counts;  // [digit][tile], then starts
  uint32_t count;
  uint32_t shift;

  GNND_DEVICE uint32_t DigitAt(uint32_t i) const { return keys[i] >> shift & (kDigits - 1); }
};

GNND_KERNEL CountDigits(SortPass pass) {
  GNND_SHARED(uint32_t, counts, kDigits);
  const uint32_t tiles = TilesOf(pass.count);
  for (uint32_t tile = BlockIndex(); tile < tiles; tile += Blocks()) {
    for (uint32_t d = ThreadInBlock(); d < kDigits; d += BlockThreads()) counts[d] = 0;
    BlockSync();
    for (uint32_t round = 0; round < kTileRounds; ++round) {
      const uint64_t i = uint64_t{tile} * kTile + round * kMaxThreads + ThreadInBlock();
      if (i < pass.count) AtomicAdd(counts + pass.DigitAt(static_cast<uint32_t>(i)), 1);
    }
    BlockSync();
    for (uint32_t d = ThreadInBlock(); d < kDigits; d += BlockThreads()) {
      pass.counts[uint64_t{d} * tiles + tile] = counts[d];
    }
    BlockSync();
  }
}

// Scan: turns counts into starts, in place; one thread reads and writes an element.
struct DigitStarts {
  uint32_t* counts;
  uint32_t count;

  GNND_DEVICE uint32_t Count() const { return count; }
  GNND_DEVICE uint32_t Value(uint32_t i) const { return counts[i]; }
  GNND_DEVICE void Finish(uint32_t) const {}
  GNND_DEVICE void Put(uint32_t i, uint32_t before, uint32_t) const { counts[i] = before; }
};

GNND_KERNEL PlaceEdges(SortPass pass) {
  // Place of the next edge of a digit, and the digit's count in each warp in this round.
  GNND_SHARED(uint32_t, next, kDigits);
  GNND_SHARED(uint32_t, in_warp, kWarps* kDigits);
  const uint32_t tiles = TilesOf(pass.count);
  const uint32_t warp = ThreadInBlock() / kWarpLanes;
  for (uint32_t tile = BlockIndex(); tile < tiles; tile += Blocks()) {
    for (uint32_t d = ThreadInBlock(); d < kDigits; d += BlockThreads()) {
      next[d] = pass.counts[uint64_t{d} * tiles + tile];
    }
    for (uint32_t round = 0; round < kTileRounds; ++round) {
      for (uint32_t d = ThreadInBlock(); d < kWarps * kDigits; d += BlockThreads()) in_warp[d] = 0;
      BlockSync();
      const uint64_t at = uint64_t{tile} * kTile + round * kMaxThreads + ThreadInBlock();
      const bool is_edge = at < pass.count;
      const auto i = static_cast<uint32_t>(at);
      const uint32_t digit = is_edge ? pass.DigitAt(i) : kDigits;
      const uint32_t same = MatchAny(kFullMask, digit);
      const uint32_t before = CountBits(same & ((1U << Lane()) - 1));
      if (is_edge && before == 0) in_warp[warp * kDigits + digit] = CountBits(same);
      BlockSync();
      if (is_edge) {
        uint32_t place = next[digit] + before;
        for (uint32_t w = 0; w < warp; ++w) place += in_warp[w * kDigits + digit];
        pass.next_keys[place] = pass.keys[i];
        pass.next_values[place] = pass.values == nullptr ? i : pass.values[i];
      }
      BlockSync();
      for (uint32_t d = ThreadInBlock(); d < kDigits; d += BlockThreads()) {
        for (uint32_t w = 0; w < kWarps; ++w) next[d] += in_warp[w * kDigits + d];
      }
      BlockSync();
    }
  }
}

// Finds row starts, where the sorted source changes; empty rows start where the next one does.
GNND_KERNEL FindRows(const uint32_t* keys, uint32_t count, uint32_t num_src, uint32_t* indptr) {
  for (uint64_t i = GridThread(); i <= count; i += GridThreads()) {
    const uint32_t first = i == 0 ? 0 : keys[i - 1] + 1;
    const uint32_t last = i == count ? num_src : keys[i];
    for (uint64_t s = first; s <= last; ++s) indptr[s] = static_cast<uint32_t>(i);
  }
}

GNND_KERNEL FindDestinations(TransposeTask task, const uint32_t* edges) {
  for (uint64_t k = GridThread(); k < task.num_edges; k += GridThreads()) {
    uint32_t low = 0;
    uint32_t high = task.num_dst;
    while (high - low > 1) {
      const uint32_t middle = low + (high - low) / 2;
      if (task.indptr[middle] <= edges[k]) {
        low = middle;
      } else {
        high = middle;
      }
    }
    task.transposed_dst[k] = low;
    task.transposed_edge[k] = edges[k];
  }
}

GNND_KERNEL TakeWeights(const float* weight, const uint32_t* from, uint64_t count, float* out) {
  for (uint64_t k = GridThread(); k < count; k += GridThreads()) out[k] = weight[from[k]];
}

uint32_t PassesOf(uint32_t num_src) {
  uint32_t passes = 1;
  while (passes * kDigitBits < 32 && num_src > 1U << passes * kDigitBits) ++passes;
  return passes;
}

uint64_t CountWords(uint32_t num_edges) { return uint64_t{TilesOf(num_edges)} * kDigits; }

}  // namespace

uint64_t TransposeWords(uint32_t num_edges) {
  const uint64_t counts = CountWords(num_edges);
  return 4 * uint64_t{num_edges} + counts + TilesOf(counts);
}

void Transpose(const Queue& queue, const TransposeTask& task, uint32_t* work) {
  const uint32_t edges = task.num_edges;
  uint32_t* const counts = work + 4 * uint64_t{edges};
  uint32_t* const tiles = counts + CountWords(edges);
  SortPass pass{task.src, nullptr, work, work + edges, counts, edges, 0};
  const uint32_t passes = PassesOf(task.num_src);
  for (uint32_t p = 0; p < passes; ++p) {
    const uint32_t blocks = PlanGrid(edges, kTile, queue.max_blocks);
    Launch(queue, CountDigits, blocks, kMaxThreads, 0, pass);
    const auto starts = static_cast<uint32_t>(CountWords(edges));
    Scan(queue, starts, DigitStarts{counts, starts}, tiles);
    Launch(queue, PlaceEdges, blocks, kMaxThreads, 0, pass);
    uint32_t* const others = work + (p % 2 == 0 ? 2 * uint64_t{edges} : 0);
    pass = {pass.next_keys, pass.next_values,    others, others + edges, counts,
            edges,          (p + 1) * kDigitBits};
  }
  LaunchFor(queue, uint64_t{edges} + 1, FindRows, pass.keys, edges, task.num_src,
            task.transposed_indptr);
  LaunchFor(queue, edges, FindDestinations, task, pass.values);
}

void TakeByIndex(const Queue& queue, const float* from, const uint32_t* index, uint64_t count,
                 float* out) {
  LaunchFor(queue, count, TakeWeights, from, index, count, out);
}

}  // namespace gnnd::cuda
