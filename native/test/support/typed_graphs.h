#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "core/graph/topology_view.h"
#include "test/support/graphs.h"

// Small random graphs of several types.

namespace gnnd::test {

// A graph that owns its arrays.
struct TypedGraph {
  struct Relation {
    uint32_t src_type;
    uint32_t dst_type;
    Graph rows;
  };

  std::vector<uint32_t> num_nodes;
  std::vector<Relation> relations;

  GraphView view() const {
    GraphView graph{num_nodes, {}};
    for (const Relation& relation : relations) {
      graph.relations.push_back({relation.src_type, relation.dst_type, relation.rows.view()});
    }
    return graph;
  }
};

// `num_relations` relations between random types, of which some have no edges; edges have weights.
inline TypedGraph RandomTypedGraph(uint64_t random_seed, std::vector<uint32_t> num_nodes,
                                   uint32_t num_relations, uint32_t max_degree) {
  std::mt19937_64 generator(random_seed);
  TypedGraph graph{std::move(num_nodes), {}};
  for (uint32_t r = 0; r < num_relations; ++r) {
    const auto src_type = static_cast<uint32_t>(generator() % graph.num_nodes.size());
    const auto dst_type = static_cast<uint32_t>(generator() % graph.num_nodes.size());
    TypedGraph::Relation relation{src_type, dst_type, {}};
    const bool is_empty = generator() % 8 == 0;
    for (uint32_t v = 0; v < graph.num_nodes[dst_type]; ++v) {
      const uint64_t degree = is_empty ? 0 : generator() % (max_degree + 1);
      std::vector<uint32_t> row(degree);
      for (uint32_t& u : row) u = static_cast<uint32_t>(generator() % graph.num_nodes[src_type]);
      std::sort(row.begin(), row.end());
      relation.rows.AddRow(row);
    }
    relation.rows.SetWeights(RandomWeights(generator(), relation.rows));
    graph.relations.push_back(std::move(relation));
  }
  return graph;
}

}  // namespace gnnd::test
