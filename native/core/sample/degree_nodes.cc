#include "core/sample/degree_nodes.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "core/graph/alias.h"

namespace gnnd {

DegreeNodes::DegreeNodes(const TopologyView& topology) {
  // Few degrees occur, so counting by degree takes time in proportion to the nodes.
  std::unordered_map<uint64_t, uint32_t> counts;
  for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
    if (topology.degree(v) > 0) ++counts[topology.degree(v)];
  }
  std::vector<std::pair<uint64_t, uint32_t>> degrees(counts.begin(), counts.end());
  std::sort(degrees.begin(), degrees.end());
  std::vector<float> weights;
  first_.push_back(0);
  for (const auto& [degree, count] : degrees) {
    const double root = std::sqrt(static_cast<double>(degree));
    weights.push_back(static_cast<float>(root * std::sqrt(root) * count));
    counts[degree] = first_.back();  // from here on: where the next node of the degree goes
    first_.push_back(first_.back() + count);
  }
  nodes_.resize(first_.back());
  for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
    if (topology.degree(v) > 0) nodes_[counts[topology.degree(v)]++] = v;
  }
  table_.resize(weights.size());
  AliasBuilder().Build(weights, table_.data());
}

}  // namespace gnnd
