#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/huge_array.h"
#include "core/graph/alias.h"
#include "power_law_graph.h"
#include "served_bench.h"

// Graphs that bench/peers/graphs.py wrote.

namespace gnnd::bench {

// Reads the graph in `folder` into private memory on 2 MiB pages, with alias tables of its weights
// if `weighted`, and its training nodes in the order of batches.
inline Graph ReadGraph(const std::string& folder, bool weighted, std::vector<uint32_t>* seeds) {
  Graph graph;
  const NpyArray indptr_file = OpenNpy(folder, "indptr.npy");
  const auto offsets = indptr_file.values<int64_t>();
  graph.indptr = HugeArray<uint64_t>(offsets.size());
  std::copy(offsets.begin(), offsets.end(), graph.indptr.data());
  const NpyArray indices_file = OpenNpy(folder, "indices.npy");
  const auto ids = indices_file.values<uint32_t>();
  graph.indices = HugeArray<uint32_t>(ids.size());
  std::copy(ids.begin(), ids.end(), graph.indices.data());
  const NpyArray seeds_file = OpenNpy(folder, "seeds.npy");
  for (const int64_t node : seeds_file.values<int64_t>()) {
    seeds->push_back(static_cast<uint32_t>(node));
  }
  if (!weighted) return graph;
  const NpyArray weights_file = OpenNpy(folder, "edge_weights.npy");
  const auto weights = weights_file.values<float>();
  graph.alias = HugeArray<AliasEntry>(weights.size());
  AliasBuilder builder;
  for (uint64_t v = 0; v + 1 < graph.indptr.size(); ++v) {
    builder.Build(weights.subspan(graph.indptr[v], graph.indptr[v + 1] - graph.indptr[v]),
                  graph.alias.data() + graph.indptr[v]);
  }
  return graph;
}

}  // namespace gnnd::bench
