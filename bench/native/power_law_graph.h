#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/huge_array.h"
#include "core/graph/alias.h"
#include "core/graph/topology_view.h"

// Graphs for benchmarks of sampling: Pareto-distributed degrees, endpoints drawn by degree, ids in
// random order, which is the worst case for locality. The same on every host.

namespace gnnd {

class Random {
 public:
  uint64_t Next() {  // splitmix64
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  uint32_t Below(uint32_t bound) { return static_cast<uint32_t>(((Next() >> 32) * bound) >> 32); }
  double Unit() { return (static_cast<double>(Next() >> 11) + 0.5) * 0x1.0p-53; }

 private:
  uint64_t state_ = 1;
};

struct Graph {
  HugeArray<uint64_t> indptr;
  HugeArray<uint32_t> indices;
  HugeArray<AliasEntry> alias;  // only on request

  TopologyView view() const {
    return {{indptr.data(), indptr.size()},
            {indices.data(), indices.size()},
            {alias.data(), alias.size()}};
  }
};

// Draws a node with probability proportional to its weight.
class EndpointTable {
 public:
  explicit EndpointTable(const std::vector<double>& weights) : entries_(weights.size()) {
    double sum = 0;
    for (const double weight : weights) sum += weight;
    const double scale = static_cast<double>(weights.size()) / sum;
    std::vector<double> left(weights.size());
    std::vector<uint32_t> small;
    std::vector<uint32_t> large;
    for (uint32_t v = 0; v < weights.size(); ++v) {
      left[v] = weights[v] * scale;
      (left[v] < 1 ? small : large).push_back(v);
    }
    while (!small.empty() && !large.empty()) {
      const uint32_t under = small.back();
      const uint32_t over = large.back();
      small.pop_back();
      entries_[under] = {static_cast<float>(left[under]), over};
      left[over] -= 1 - left[under];
      if (left[over] >= 1) continue;
      large.pop_back();
      small.push_back(over);
    }
    for (const auto& rest : {small, large}) {
      for (const uint32_t v : rest) entries_[v] = {1, v};
    }
  }
  uint32_t Draw(Random* random) const {
    const uint32_t v = random->Below(static_cast<uint32_t>(entries_.size()));
    const auto [threshold, other] = entries_[v];
    return random->Unit() < static_cast<double>(threshold) ? v : other;
  }

 private:
  std::vector<std::pair<float, uint32_t>> entries_;
};

inline Graph PowerLawGraph(uint32_t num_nodes, uint64_t num_edges) {
  constexpr double kShape = 1.95;  // median 36, size-biased mean 175 at mean 51.7
  constexpr double kMaxOverMean = 390;
  Random random;
  std::vector<double> weights(num_nodes);
  double sum = 0;
  for (double& weight : weights) {
    weight = std::min(std::pow(random.Unit(), -1 / kShape), kMaxOverMean * kShape / (kShape - 1));
    sum += weight;
  }
  Graph graph{HugeArray<uint64_t>(uint64_t{num_nodes} + 1), HugeArray<uint32_t>(num_edges), {}};
  double cumulated = 0;
  for (uint32_t v = 0; v < num_nodes; ++v) {
    cumulated += weights[v];
    graph.indptr[v + 1] = std::min(
        num_edges, static_cast<uint64_t>(cumulated / sum * static_cast<double>(num_edges)));
  }
  graph.indptr[num_nodes] = num_edges;
  const EndpointTable endpoints(weights);
  for (uint64_t e = 0; e < num_edges; ++e) graph.indices[e] = endpoints.Draw(&random);
  return graph;
}

// Edge weights uniform in 1 to 10, as alias tables.
inline void AddAliasTables(Graph* graph) {
  Random random;
  AliasBuilder builder;
  std::vector<float> weights;
  graph->alias = HugeArray<AliasEntry>(graph->indices.size());
  for (uint64_t v = 0; v + 1 < graph->indptr.size(); ++v) {
    weights.resize(graph->indptr[v + 1] - graph->indptr[v]);
    for (float& weight : weights) weight = static_cast<float>(1 + random.Below(10));
    builder.Build(weights, graph->alias.data() + graph->indptr[v]);
  }
}

}  // namespace gnnd
