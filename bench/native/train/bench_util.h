#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

#include "test/support/record_builder.h"

// Common code of the Trainer's benchmarks.

namespace gnnd::bench {

inline double Milliseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

inline double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A graph whose in-neighbours favour low ids: neighbour floor(nodes * u^2) for uniform u.
inline test::TestGraph SkewedGraph(uint32_t nodes, uint32_t mean_degree, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform;
  test::TestGraph graph;
  for (uint32_t v = 0; v < nodes; ++v) {
    const uint64_t degree = random() % (2 * mean_degree + 1);
    for (uint64_t k = 0; k < degree; ++k) {
      const double u = uniform(random);
      graph.indices.push_back(static_cast<uint32_t>(u * u * nodes));
    }
    graph.indptr.push_back(graph.indices.size());
  }
  return graph;
}

inline std::vector<uint32_t> DistinctNodes(uint32_t count, uint32_t nodes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint32_t> list;
  std::vector<bool> taken(nodes);
  while (list.size() < count) {
    const auto v = static_cast<uint32_t>(random() % nodes);
    if (taken[v]) continue;
    taken[v] = true;
    list.push_back(v);
  }
  return list;
}

}  // namespace gnnd::bench
