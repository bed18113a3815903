#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/graph/alias.h"
#include "core/graph/topology_view.h"

// Small random graphs for tests. Everything follows from the random seed that a test names; a
// failing case is repeated by GNND_SEED.

namespace gnnd::test {

// GNND_SEED from the environment, else `fallback`.
inline uint64_t RandomSeed(uint64_t fallback) {
  const char* text = std::getenv("GNND_SEED");
  return text == nullptr ? fallback : std::stoull(text);
}

// A graph that owns its arrays.
struct Graph {
  std::vector<uint64_t> indptr{0};
  std::vector<uint32_t> indices;
  std::vector<AliasEntry> alias;  // empty until SetWeights

  TopologyView view() const { return {indptr, indices, alias}; }
  void AddRow(const std::vector<uint32_t>& neighbours) {
    indices.insert(indices.end(), neighbours.begin(), neighbours.end());
    indptr.push_back(indices.size());
  }
  void SetWeights(const std::vector<float>& weights) {
    alias.resize(indices.size());
    AliasBuilder builder;
    for (size_t v = 0; v + 1 < indptr.size(); ++v) {
      builder.Build(std::span(weights).subspan(indptr[v], indptr[v + 1] - indptr[v]),
                    alias.data() + indptr[v]);
    }
  }
};

// Edge weights that differ by orders of magnitude; one in eight is 0, and so is a whole row now and
// then.
inline std::vector<float> RandomWeights(uint64_t random_seed, const Graph& graph) {
  std::mt19937_64 generator(random_seed);
  std::vector<float> weights(graph.indices.size());
  for (size_t v = 0; v + 1 < graph.indptr.size(); ++v) {
    const bool weightless = generator() % 16 == 0;
    for (uint64_t e = graph.indptr[v]; e < graph.indptr[v + 1]; ++e) {
      // One after the other: compilers differ in the order in which they evaluate arguments.
      const auto exponent = static_cast<int>(generator() % 12);
      const auto fraction = static_cast<float>(generator() % 1024) / 1024.0F;
      const float weight = std::ldexp(1.0F + fraction, exponent);
      weights[e] = weightless || generator() % 8 == 0 ? 0.0F : weight;
    }
  }
  return weights;
}

// Row lengths from 0 to `max_degree`, skewed to small ones; neighbours are uniform, so that
// self-loops and repeated neighbours occur. About one row in eight is empty.
inline Graph RandomGraph(uint64_t random_seed, uint32_t num_nodes, uint32_t max_degree) {
  std::mt19937_64 generator(random_seed);
  const auto below = [&](uint64_t bound) { return static_cast<uint32_t>(generator() % bound); };
  Graph graph;
  std::vector<uint32_t> row;
  for (uint32_t v = 0; v < num_nodes; ++v) {
    const uint32_t limit = below(max_degree + 1);
    row.resize(below(8) == 0 ? 0 : below(uint64_t{limit} + 1));
    for (uint32_t& neighbour : row) neighbour = below(num_nodes);
    graph.AddRow(row);
  }
  return graph;
}

// `count` distinct nodes in random order.
inline std::vector<uint32_t> RandomNodes(uint64_t random_seed, uint32_t num_nodes, uint32_t count) {
  std::mt19937_64 generator(random_seed);
  std::vector<uint32_t> nodes(num_nodes);
  for (uint32_t v = 0; v < num_nodes; ++v) nodes[v] = v;
  for (uint32_t i = 0; i < count; ++i) {
    std::swap(nodes[i], nodes[i + generator() % (num_nodes - i)]);
  }
  nodes.resize(count);
  return nodes;
}

}  // namespace gnnd::test
