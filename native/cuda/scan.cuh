#pragma once

#include <cstdint>

#include "cuda/dev.h"

// Prefix sums of 32-bit numbers, and compaction based on them, in three launches. Blocks take tiles
// of fixed size, so that no block waits for another; only the device knows the number of tiles. The
// summed values come from a plain struct:
//
//   struct Work {
//     GNND_DEVICE uint32_t Count() const;                // elements; the same in all launches
//     GNND_DEVICE uint32_t Value(uint32_t i) const;      // of element i < Count()
//     GNND_DEVICE void Finish(uint32_t total) const;     // once, before any Put
//     GNND_DEVICE void Put(uint32_t i, uint32_t before, uint32_t value) const;
//   };
//
// Put gets the sum of the values of all elements before i, and Value(i).

namespace gnnd::cuda {

inline constexpr uint32_t kTileRounds = 8;
inline constexpr uint32_t kTile = kMaxThreads * kTileRounds;

// Number of tiles for up to n elements, and so of the words of workspace that a scan needs.
constexpr uint32_t TilesOf(uint64_t n) { return static_cast<uint32_t>((n + kTile - 1) / kTile); }

// The sum of the values of lower threads, and in *total that of all. For blocks of kMaxThreads.
GNND_DEVICE uint32_t SumBefore(uint32_t value, uint32_t* total) {
  GNND_SHARED(uint32_t, warps, kMaxThreads / kWarpLanes);
  uint32_t sum = value;  // sum of the lanes up to this one
  GNND_UNROLL
  for (uint32_t distance = 1; distance < kWarpLanes; distance *= 2) {
    const uint32_t below = ShuffleUp(kFullMask, sum, distance);
    if (Lane() >= distance) sum += below;
  }
  const uint32_t warp = ThreadInBlock() / kWarpLanes;
  if (Lane() == kWarpLanes - 1) warps[warp] = sum;
  BlockSync();
  uint32_t before = sum - value;
  uint32_t all = 0;
  for (uint32_t w = 0; w < kMaxThreads / kWarpLanes; ++w) {
    before += w < warp ? warps[w] : 0;
    all += warps[w];
  }
  *total = all;
  BlockSync();
  return before;
}

template <typename Work>
GNND_KERNEL SumTiles(Work work, uint32_t* tiles) {
  const uint32_t count = work.Count();
  for (uint32_t tile = BlockIndex(); tile < TilesOf(count); tile += Blocks()) {
    uint32_t sum = 0;
    for (uint32_t round = 0; round < kTileRounds; ++round) {
      const uint64_t i = uint64_t{tile} * kTile + round * kMaxThreads + ThreadInBlock();
      if (i < count) sum += work.Value(static_cast<uint32_t>(i));
    }
    uint32_t total = 0;
    SumBefore(sum, &total);
    if (ThreadInBlock() == 0) tiles[tile] = total;
  }
}

// One block: turns the sums of tiles into the sums before each tile.
template <typename Work>
GNND_KERNEL ScanTiles(Work work, uint32_t* tiles) {
  const uint32_t count = TilesOf(work.Count());
  uint32_t before = 0;
  for (uint32_t base = 0; base < count; base += kMaxThreads) {
    const uint32_t tile = base + ThreadInBlock();
    uint32_t total = 0;
    const uint32_t mine = SumBefore(tile < count ? tiles[tile] : 0, &total);
    if (tile < count) tiles[tile] = before + mine;
    before += total;
  }
  BlockSync();  // all threads have read the counts that Finish changes
  if (ThreadInBlock() == 0) work.Finish(before);
}

template <typename Work>
GNND_KERNEL PutTiles(Work work, const uint32_t* tiles) {
  const uint32_t count = work.Count();
  for (uint32_t tile = BlockIndex(); tile < TilesOf(count); tile += Blocks()) {
    uint32_t before = tiles[tile];
    for (uint32_t round = 0; round < kTileRounds; ++round) {
      const uint64_t i = uint64_t{tile} * kTile + round * kMaxThreads + ThreadInBlock();
      const uint32_t value = i < count ? work.Value(static_cast<uint32_t>(i)) : 0;
      uint32_t total = 0;
      const uint32_t mine = SumBefore(value, &total);
      if (i < count) work.Put(static_cast<uint32_t>(i), before + mine, value);
      before += total;
    }
  }
}

// Scans at most `bound` elements; `tiles` has TilesOf(bound) words.
template <typename Work>
void Scan(const Queue& queue, uint64_t bound, const Work& work, uint32_t* tiles) {
  const uint32_t blocks = PlanGrid(bound, kTile, queue.max_blocks);
  Launch(queue, SumTiles<Work>, blocks, kMaxThreads, 0, work, tiles);
  Launch(queue, ScanTiles<Work>, 1, kMaxThreads, 0, work, tiles);
  Launch(queue, PutTiles<Work>, blocks, kMaxThreads, 0, work, tiles);
}

}  // namespace gnnd::cuda
