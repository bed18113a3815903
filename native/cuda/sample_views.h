#pragma once

#include <cstdint>

#include "core/draw/alias.h"
#include "core/draw/labor.h"
#include "core/draw/stream.h"
#include "core/draw/walk.h"

// Device memory for sampling as kernels see it. All pointers are device memory, which the caller
// owns; operators.h says how large it must be.

namespace gnnd::cuda {

inline constexpr uint32_t kMaxSampleHops = 8;

// A graph in compressed sparse column form (core/graph/topology_view.h). Every index is a node.
struct GraphView {
  const uint64_t* indptr = nullptr;   // [num_nodes + 1]
  const uint32_t* indices = nullptr;  // [indptr[num_nodes]]
  const AliasEntry* alias = nullptr;  // [indptr[num_nodes]], or null if no draw needs it
  uint32_t num_nodes = 0;
};

// Maps a node to its place in the batch, without being cleared: a word is stamp << 32 | ~place, so
// the largest word in a batch has the smallest place, and older batches' words are below.
struct NodeTable {
  uint64_t* words = nullptr;  // [num_nodes]; with keys [slots], at least 2 * max_nodes
  // Null: one word per node. Otherwise open addressing, for graphs with too many nodes; a slot
  // holds stamp << 32 | node.
  uint64_t* keys = nullptr;
  uint32_t slot_bits = 0;
  // Rises with each batch, from 1; before it wraps around, all words and keys must be zeroed.
  uint32_t stamp = 0;
};

// Reasons why there is no sample; bits.
enum SampleError : uint32_t {
  kNoError = 0,
  kSeedTwice = 1,
  kSeedUnknown = 2,     // not a node of the graph
  kSampleTooLarge = 4,  // more nodes or edges than fit
};

// Sizes of one hop: it draws rows [first_row, num_dst), whose edges are [first_edge, num_edges).
struct HopCounts {
  uint32_t first_row;
  uint32_t num_dst;
  uint32_t first_edge;
  uint32_t num_edges;
};

// The sizes of a sample, which only the device knows until they are copied. Block h has hops[h +
// 1].num_dst sources.
struct SampleState {
  uint32_t error;
  uint32_t num_slow;  // rows of the hop that are drawn by scanning (weighted)
  HopCounts hops[kMaxSampleHops + 1];
};

// The buffers of one sample under way.
struct SampleBuffers {
  SampleState* state = nullptr;
  uint32_t* nodes = nullptr;  // [max_nodes]
  uint32_t max_nodes = 0;
  uint32_t* ids = nullptr;  // [max_edges], global ids of a hop's neighbours
  uint32_t max_edges = 0;   // largest number that one hop adds
  uint32_t* tiles = nullptr;
  // Workspace of the strategy (WorkWords).
  uint64_t* work = nullptr;
  double* inverses = nullptr;  // [max_nodes], for GCN weights only
};

// The arrays of a hop's block. With Expansion::kNew all hops share them.
struct HopOut {
  uint32_t* indptr = nullptr;    // [max_dst + 1]
  uint32_t* src = nullptr;       // [max_edges]
  float* weight = nullptr;       // [max_edges] or null
  float* self_weight = nullptr;  // [max_dst] or null
  uint32_t max_dst = 0;
  uint32_t max_edges = 0;
};

// One hop of one sample.
struct HopTask {
  GraphView graph;
  NodeTable table;
  SampleBuffers buffers;
  HopOut out;
  uint32_t hop = 0;
  bool appends = false;  // the next hop's rows follow this one's (Expansion::kNew)
};

}  // namespace gnnd::cuda
