#pragma once

#include <cstdint>

#include "cuda/sample_views.h"
#include "cuda/scan.cuh"

// Deduplicates and relabels in order of first occurrence, as core/sample/relabel.h. Every id of a
// hop has a place, after the places of known nodes. The smallest place of a node wins, whatever the
// order in which its edges are processed, and a scan over the winning places numbers new nodes in
// order.

namespace gnnd::cuda {

struct DenseMap {
  uint64_t* words;
  uint32_t stamp;

  GNND_DEVICE uint64_t* Claim(uint32_t id) const { return words + id; }
  GNND_DEVICE uint64_t* Find(uint32_t id) const { return words + id; }
};

struct HashMap {
  uint64_t* words;
  uint64_t* keys;
  uint32_t slot_bits;
  uint32_t stamp;

  GNND_DEVICE uint64_t First(uint32_t id) const {
    constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
    return id * kGolden >> (64 - slot_bits);
  }
  GNND_DEVICE uint64_t Next(uint64_t slot) const {
    return (slot + 1) & ((uint64_t{1} << slot_bits) - 1);
  }
  GNND_DEVICE uint64_t KeyOf(uint32_t id) const { return uint64_t{stamp} << 32 | id; }

  // Slots only change from an older batch's to this batch's, so a slot that was passed once is
  // always passed. A full table means more nodes than a sample may have, which NewNodes detects, so
  // then any slot will do.
  GNND_DEVICE uint64_t* Claim(uint32_t id) const {
    const uint64_t mine = KeyOf(id);
    uint64_t slot = First(id);
    for (uint64_t passed = 0; passed >> slot_bits == 0; ++passed) {
      uint64_t key = LoadRelaxed(keys + slot);
      if (key >> 32 != stamp) {
        const uint64_t before = AtomicCas(keys + slot, key, mine);
        key = before == key ? mine : before;
      }
      if (key == mine) break;
      slot = Next(slot);
    }
    return words + slot;
  }
  GNND_DEVICE uint64_t* Find(uint32_t id) const {
    const uint64_t mine = KeyOf(id);
    uint64_t slot = First(id);
    for (uint64_t passed = 0; passed >> slot_bits == 0; ++passed) {
      if (LoadRelaxed(keys + slot) == mine) break;
      slot = Next(slot);
    }
    return words + slot;
  }
};

template <typename Map>
GNND_DEVICE uint64_t PlaceWord(const Map& map, uint32_t place) {
  return uint64_t{map.stamp} << 32 | (0xFFFFFFFFU - place);
}
template <typename Map>
GNND_DEVICE uint32_t PlaceOf(const Map& map, uint32_t id) {
  return 0xFFFFFFFFU - static_cast<uint32_t>(LoadRelaxed(map.Find(id)));
}

// Records an occurrence of a node.
template <typename Map>
GNND_DEVICE void MarkPlace(const Map& map, uint32_t id, uint32_t place) {
  uint64_t* const word = map.Claim(id);
  const uint64_t mine = PlaceWord(map, place);
  // Reading first spares the atomic in the common case that a hub has been marked before.
  if (LoadRelaxed(word) < mine) AtomicMax(word, mine);
}

// Scan: winning occurrences become nodes, and their words then hold local ids, which are below all
// places to come.
template <typename Map>
struct NewNodes {
  Map map;
  SampleBuffers buffers;
  uint32_t hop;  // hop of the block whose sources they are; or kSeeds
  uint32_t num_seeds;
  bool appends;

  static constexpr uint32_t kSeeds = 0xFFFFFFFF;

  GNND_DEVICE uint32_t Known() const {
    return hop == kSeeds ? 0 : buffers.state->hops[hop].num_dst;
  }
  GNND_DEVICE uint32_t Count() const {
    if (buffers.state->error != 0) return 0;
    if (hop == kSeeds) return num_seeds;
    return buffers.state->hops[hop].num_edges - buffers.state->hops[hop].first_edge;
  }
  GNND_DEVICE uint32_t Value(uint32_t i) const {
    return PlaceOf(map, buffers.ids[i]) == Known() + i ? 1 : 0;
  }
  GNND_DEVICE void Finish(uint32_t total) const {
    SampleState* const state = buffers.state;
    if (state->error != 0) total = 0;
    const uint32_t known = Known();
    if (hop == kSeeds && state->error == 0 && total != num_seeds) state->error = kSeedTwice;
    if (total > buffers.max_nodes - known) {
      state->error |= kSampleTooLarge;
      total = 0;
    }
    const bool extends = hop != kSeeds && appends;
    const uint32_t next = hop == kSeeds ? 0 : hop + 1;
    state->hops[next].first_row = extends ? state->hops[hop].num_dst : 0;
    state->hops[next].num_dst = known + total;
    state->hops[next].first_edge = extends ? state->hops[hop].num_edges : 0;
    state->hops[next].num_edges = state->hops[next].first_edge;
  }
  GNND_DEVICE void Put(uint32_t i, uint32_t before, uint32_t value) const {
    if (value == 0) return;
    const uint32_t local = Known() + before;
    buffers.nodes[local] = buffers.ids[i];
    StoreRelaxed(map.Find(buffers.ids[i]), PlaceWord(map, local));
  }
};

template <typename Map>
GNND_KERNEL LookUp(Map map, HopTask task) {
  const SampleState& state = *task.buffers.state;
  if (state.error != 0) return;
  const HopCounts counts = state.hops[task.hop];
  const uint32_t edges = counts.num_edges - counts.first_edge;
  for (uint64_t i = GridThread(); i < edges; i += GridThreads()) {
    task.out.src[counts.first_edge + i] = PlaceOf(map, task.buffers.ids[i]);
  }
}

// Calls run(map) with the map of the table's kind.
template <typename Run>
void WithMap(const NodeTable& table, const Run& run) {
  if (table.keys == nullptr) {
    run(DenseMap{table.words, table.stamp});
  } else {
    run(HashMap{table.words, table.keys, table.slot_bits, table.stamp});
  }
}

// Turns the hop's ids, which have been marked, into sources of its block.
template <typename Map>
void Relabel(const Queue& queue, const Map& map, const HopTask& task) {
  const NewNodes<Map> nodes{map, task.buffers, task.hop, 0, task.appends};
  Scan(queue, task.buffers.max_edges, nodes, task.buffers.tiles);
  LaunchFor(queue, task.buffers.max_edges, LookUp<Map>, map, task);
}

}  // namespace gnnd::cuda
