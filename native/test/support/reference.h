#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "core/batch/record.h"
#include "core/graph/topology_view.h"
#include "core/item/links.h"
#include "core/sample/options.h"

// The sampler once more, written to be read: what Sampler must equal bit for bit, and what the
// benchmark calls naive. One row after the other, no tables kept, no instruction sets.

namespace gnnd {

struct ReferenceBlock {
  std::vector<uint32_t> indptr;    // [num_dst + 1]
  std::vector<uint32_t> src;       // [num_edges], batch-local
  std::vector<float> weight;       // [num_edges] or empty
  std::vector<float> self_weight;  // [num_dst] or empty
};

struct ReferenceSample {
  std::vector<uint32_t> nodes;         // global ids, seeds first
  std::vector<ReferenceBlock> blocks;  // hop 0 is at the seeds
};

// Edges that a batch does without, as (row, source), or leaves out of what it drew.
struct ReferenceSkips {
  std::set<std::pair<uint32_t, uint32_t>> edges;
  bool after = false;
};

// `seeds` are distinct nodes of the graph; `scale` as of Sampler::Sample.
ReferenceSample SampleReference(const TopologyView& topology, const SamplerOptions& options,
                                const BatchKey& key, std::span<const uint32_t> seeds,
                                uint32_t scale = 16, const ReferenceSkips& skips = {});

// A batch of a graph of several types.
struct TypedReferenceSample {
  struct Block {
    uint32_t hop;
    uint32_t relation;
    ReferenceBlock block;
  };

  std::vector<std::vector<uint32_t>> nodes;  // of each type, ids of that type
  std::vector<Block> blocks;                 // by hop, within a hop by relation
};

// `seeds` are distinct nodes of `seed_type`. No walks, plug-ins, GCN weights or locality.
TypedReferenceSample TypedReference(const GraphView& graph, const SamplerOptions& options,
                                    const BatchKey& key, std::span<const uint32_t> seeds,
                                    uint32_t seed_type);

// The seeds and pairs of a batch of links.
struct ReferenceLinks {
  std::vector<uint32_t> seeds;
  std::vector<uint32_t> items;
  std::vector<uint32_t> source;  // rows
  std::vector<uint32_t> destination;
  std::vector<uint32_t> negatives;
  std::vector<uint32_t> masked;
};

ReferenceLinks LinksReference(const TopologyView& topology, const LinkOptions& options,
                              const BatchKey& key, std::span<const uint32_t> links,
                              uint32_t batch_size);

}  // namespace gnnd
