#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/cpu.h"
#include "core/base/status.h"
#include "core/batch/layout.h"
#include "core/batch/record.h"
#include "core/graph/topology_view.h"
#include "core/sample/expand.h"
#include "core/sample/gcn_weights.h"
#include "core/sample/labor.h"
#include "core/sample/locality_hop.h"
#include "core/sample/options.h"
#include "core/sample/relabel.h"
#include "core/sample/walk_hop.h"
#include "core/sample/weighted.h"

// Neighbour sampling by any algorithm of options.h, deduplicated and relabelled, written straight
// into a queue slot. A batch is a pure function of its key (draw.h): the same key, seeds
// and graph give the same bytes on every instruction set and in every process.

namespace gnnd {

// What a batch of links has beside its seeds.
struct LinkBatch {
  PairsView pairs;
  RowSkips skips;
};

// For use by one thread. Allocates only when it is made and when its hash tables grow with batches.
class Sampler {
 public:
  // `layout` must belong to the same graph and options. Borrows the graph, whose relations have
  // alias tables if the algorithm is kWeighted. GCN's weights, plug-ins and locality are for graphs
  // of one relation, walks for relations between nodes of one type.
  Sampler(GraphView graph, SamplerOptions options, const RecordLayout& layout,
          InstructionSet instruction_set, PrefetchLevel prefetch = BestPrefetchLevel());
  // Of a graph of one type and one relation.
  Sampler(const TopologyView& topology, SamplerOptions options, const RecordLayout& layout,
          InstructionSet instruction_set, PrefetchLevel prefetch = BestPrefetchLevel())
      : Sampler(GraphView::Of(topology), std::move(options), layout, instruction_set, prefetch) {}

  // Writes the record of batch `key` with seeds `seeds` of `seed_type` into `slot`: at least
  // layout.slot_bytes() large, 8-byte aligned, of any content. kInvalidArgument, and no record,
  // when there are no or too many seeds, or a seed is not a node or occurs twice; kPluginFailed
  // when a plug-in breaks the rules. `scale` is that of favoured neighbours, in sixteenths
  // (core/draw/locality.h); above kScaleOne the topology must name them. A batch of links has pairs
  // and skips, and one relation; CanSkipAfter says where neighbours may be left out after the draw.
  Status Sample(const BatchKey& key, std::span<const uint32_t> seeds, std::span<std::byte> slot,
                uint32_t scale = kScaleOne, const LinkBatch& links = {}, uint32_t seed_type = 0);

  // Private memory in use: relabel tables, ring, weights. Grows with the largest batch so far, up
  // to 1 MiB + 16 bytes per node of the graph + 64 bytes per edge of that batch, each seed counted
  // as one more edge (docs/sampling.md; rows that list a neighbour many times may exceed it).
  uint64_t workspace_bytes() const;

 private:
  using Table = std::variant<DenseRelabel, HashRelabel>;

  // What the batch has of one type of nodes.
  struct Found {
    Table table;
    uint32_t* nodes = nullptr;
    uint32_t count = 0;
    uint32_t at_hop = 0;  // nodes before the hop, which are its rows
  };
  // What the batch has of one relation.
  struct Drawn {
    uint32_t num_dst = 0;  // rows so far
    uint32_t num_edges = 0;
  };

  void Check() const;
  Status SampleBlocks(const BatchKey& key, std::byte* slot, const RowSkips& skips);
  Status InsertSeeds(std::span<const uint32_t> seeds, uint32_t seed_type);
  Status SampleBlock(const BlockLayout& place, const BatchKey& key, std::byte* slot,
                     const RowSkips& skips);
  template <typename TableType>
  void ExpandUniformly(TableType* table, const BlockLayout& place, const BatchKey& key,
                       HopTask* task);
  template <typename TableType>
  Status Expand(TableType* table, const BlockLayout& place, const BatchKey& key, HopTask* task);
  // Whether the block favours some of the neighbours.
  bool Favours(const BlockLayout& place) const {
    return scale_ > kScaleOne && place.fanout != kFullNeighbourhood;
  }

  GraphView graph_;
  SamplerOptions options_;
  RecordLayout layout_;
  const PickLoops& pick_loops_;
  const LaborLoops& labor_loops_;
  const WalkLoops& walk_loops_;
  ExpandBuffers buffers_;
  WeightedPicker weighted_picker_;
  WalkBuffers walk_buffers_;
  LocalityBuffers locality_buffers_;
  GcnWeights gcn_weights_;
  std::vector<Found> found_;  // by type
  std::vector<Drawn> drawn_;  // by relation
  RecordTables tables_;
  uint32_t scale_ = kScaleOne;  // for the present batch
};

}  // namespace gnnd
