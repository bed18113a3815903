#pragma once

#include <cstdint>

#include "core/draw/alias.h"
#include "core/draw/labor.h"
#include "core/draw/stream.h"
#include "core/draw/walk.h"

// Memory of a device that sampling works in, as its kernels see it. All pointers are the device's;
// who owns them, and how much there is, is the caller's matter (operators.h says how much).

namespace gnnd::cuda {

inline constexpr uint32_t kMaxSampleHops = 8;

// A graph in compressed sparse column form (core/graph/topology_view.h). Every index is a node.
struct GraphView {
  const uint64_t* indptr = nullptr;   // [num_nodes + 1]
  const uint32_t* indices = nullptr;  // [indptr[num_nodes]]
  const AliasEntry* alias = nullptr;  // [indptr[num_nodes]], or null where nothing is drawn by it
  uint32_t num_nodes = 0;
};

// From a node to its place in the batch, without anything to clear: a word is stamp << 32 | ~place,
// so the largest of a batch is that of its smallest place, and older batches are below it.
struct NodeTable {
  uint64_t* words = nullptr;  // [num_nodes]; with keys [slots], at least 2 * max_nodes
  // Null: a word a node. Else open addressing, for graphs whose words would be too many: what lies
  // in a slot is stamp << 32 | node.
  uint64_t* keys = nullptr;
  uint32_t slot_bits = 0;
  // Rises with each batch, from 1; before it comes round all words and keys are to be zeroed.
  uint32_t stamp = 0;
};

// Why there is no sample; bits.
enum SampleError : uint32_t {
  kNoError = 0,
  kSeedTwice = 1,
  kSeedUnknown = 2,     // not a node of the graph
  kSampleTooLarge = 4,  // more nodes or edges than there is room for
};

// Of one hop: rows [first_row, num_dst) are drawn, edges [first_edge, num_edges) are theirs.
struct HopCounts {
  uint32_t first_row;
  uint32_t num_dst;
  uint32_t first_edge;
  uint32_t num_edges;
};

// What is known of a sample's sizes, on the device alone until it is copied. Block h has hops[h +
// 1].num_dst sources.
struct SampleState {
  uint32_t error;
  uint32_t num_slow;  // rows of the hop that are drawn by scanning (weighted)
  HopCounts hops[kMaxSampleHops + 1];
};

// A sample on its way.
struct SampleBuffers {
  SampleState* state = nullptr;
  uint32_t* nodes = nullptr;  // [max_nodes]
  uint32_t max_nodes = 0;
  uint32_t* ids = nullptr;  // [max_edges], global ids of a hop's neighbours
  uint32_t max_edges = 0;   // that one hop adds
  uint32_t* tiles = nullptr;
  // Whatever a strategy needs beside (WorkBytesOf).
  uint64_t* work = nullptr;
  double* inverses = nullptr;  // [max_nodes], GCN weights alone
};

// Where a hop's block goes. With Expansion::kNew all hops have the same.
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
