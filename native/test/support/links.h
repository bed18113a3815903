#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "core/item/links.h"
#include "core/sample/link_seeds.h"
#include "core/sample/sampler.h"
#include "test/support/graphs.h"
#include "test/support/reference.h"

// Graphs whose edges are links to be learnt, and what a batch of them must look like.

namespace gnnd::test {

struct LinkGraph {
  Graph graph;                  // rows ascend; loops and repeats occur
  std::vector<uint32_t> links;  // [items, 2]: source, destination, by (destination, source)
  bool symmetric = false;

  uint32_t num_links() const { return static_cast<uint32_t>(links.size() / 2); }
};

// The links of a graph: of a symmetric one the pairs whose source is the smaller node.
inline std::vector<uint32_t> LinksOf(const TopologyView& topology, bool symmetric) {
  std::vector<uint32_t> links;
  for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
    std::set<uint32_t> sources;
    for (uint64_t e = topology.indptr[v]; e < topology.indptr[v + 1]; ++e) {
      sources.insert(topology.indices[e]);
    }
    for (const uint32_t source : sources) {
      if (source == v || (symmetric && source > v)) continue;
      links.push_back(source);
      links.push_back(v);
    }
  }
  return links;
}

inline LinkGraph RandomLinkGraph(uint64_t random_seed, uint32_t num_nodes, uint32_t max_degree,
                                 bool symmetric) {
  const Graph drawn = RandomGraph(random_seed, num_nodes, max_degree);
  std::vector<std::vector<uint32_t>> rows(num_nodes);
  for (uint32_t v = 0; v < num_nodes; ++v) {
    for (uint64_t e = drawn.indptr[v]; e < drawn.indptr[v + 1]; ++e) {
      rows[v].push_back(drawn.indices[e]);
      if (symmetric && drawn.indices[e] != v) rows[drawn.indices[e]].push_back(v);
    }
  }
  LinkGraph made;
  made.symmetric = symmetric;
  for (std::vector<uint32_t>& row : rows) {
    std::sort(row.begin(), row.end());
    made.graph.AddRow(row);
  }
  made.links = LinksOf(made.graph.view(), symmetric);
  return made;
}

inline LinkOptions OptionsOf(const LinkGraph& graph, LinkOptions options = {}) {
  options.count = graph.num_links();
  options.symmetric = graph.symmetric;
  return options;
}

// The edges that a batch of these pairs does without.
inline ReferenceSkips SkipsOf(const LinkBatch& batch, std::span<const uint32_t> nodes,
                              const LinkOptions& options) {
  ReferenceSkips skips{{}, options.exclude == LinkExclusion::kBatchAfter};
  if (options.exclude == LinkExclusion::kNone) return skips;
  for (uint32_t i = 0; i < batch.pairs.size(); ++i) {
    const uint32_t source = nodes[batch.pairs.source[i]];
    const uint32_t destination = nodes[batch.pairs.destination[i]];
    skips.edges.insert({destination, source});
    if (options.symmetric) skips.edges.insert({source, destination});
  }
  return skips;
}

}  // namespace gnnd::test
