#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/cpu.h"
#include "core/base/status.h"
#include "core/batch/layout.h"
#include "core/batch/record.h"
#include "core/graph/timed_graph.h"
#include "core/sample/expand.h"
#include "core/sample/options.h"
#include "core/sample/times.h"
#include "core/sample/tree_relabel.h"

// Neighbour sampling in time: each seed has a time, and a tree of its own, all of whose rows take
// only edges that the seed sees (times.h). Nodes are unique within a tree, so that a batch lists a
// node once for each tree that has it. Draws are uniform (core/draw/floyd.h), keyed by tree
// (core/draw/tree.h), or the most recent edges.
//
// A tree is a pure function of the batch key, its number, its seed, the time and the edges that the
// seed sees: what lies later, and what the batch's other trees hold, changes nothing of it.

namespace gnnd {

// Seeds of one type, each of which begins a tree.
struct TimedSeeds {
  uint32_t type = 0;
  std::span<const uint32_t> nodes;
  std::span<const int64_t> times;  // as many as nodes
};

// The bounds of records of trees. A batch has at most max_seeds[t] seeds of type t.
SampleLimits TreeLimitsOf(const GraphView& graph, std::span<const uint32_t> max_seeds,
                          const SamplerOptions& options);

// For use by one thread. Allocates only when it is made and when its tables grow with batches.
class TemporalSampler {
 public:
  // `layout` must be of TreeLimitsOf the same graph and options, which name kUniform, without
  // weights and locality; recent edges are taken without replacement. Borrows the graph's arrays.
  TemporalSampler(TimedGraph graph, SamplerOptions options, TimeOptions times,
                  const RecordLayout& layout, InstructionSet instruction_set,
                  PrefetchLevel prefetch = BestPrefetchLevel());

  // Writes the record of batch `key` into `slot`, as Sampler::Sample does. Trees are numbered in
  // the order of `seeds`, list after list, whose types ascend. A node may be a seed many times.
  // Rows of `pairs` are rows of the seeds. kInvalidArgument, and no record, when there are no or
  // too many seeds, or a seed is not a node.
  Status Sample(const BatchKey& key, std::span<const TimedSeeds> seeds, std::span<std::byte> slot,
                const PairsView& pairs = {});

  // Private memory in use: tables and ring.
  uint64_t workspace_bytes() const;

 private:
  // What the batch has of one type of nodes.
  struct Found {
    TreeRelabel table;
    uint32_t* nodes = nullptr;
    uint32_t count = 0;
    uint32_t num_seeds = 0;
    uint32_t at_hop = 0;  // nodes before the hop, which are its rows
  };
  // What the batch has of one relation.
  struct Drawn {
    uint32_t num_dst = 0;  // rows so far
    uint32_t num_edges = 0;
  };

  void Check() const;
  Status CheckSeeds(std::span<const TimedSeeds> seeds) const;
  void Begin(std::span<const TimedSeeds> seeds, std::byte* slot);
  void SampleBlock(const BlockLayout& place, const BatchKey& key, std::byte* slot);
  void Expand(const BlockLayout& place, HopTask* task);

  TimedGraph timed_;
  SamplerOptions options_;
  TimeOptions times_;
  RecordLayout layout_;
  const PickLoops& pick_loops_;
  ExpandBuffers buffers_;
  std::vector<Found> found_;     // by type
  std::vector<Drawn> drawn_;     // by relation
  std::vector<TimeRange> seen_;  // by tree
  RecordTables tables_;
};

}  // namespace gnnd
