#include "core/sample/degree_nodes.h"

#include <algorithm>
#include <cmath>

#include "core/graph/alias.h"

namespace gnnd {

DegreeNodes::DegreeNodes(const TopologyView& topology) {
  for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
    if (topology.degree(v) > 0) nodes_.push_back(v);
  }
  if (nodes_.empty()) return;
  std::stable_sort(nodes_.begin(), nodes_.end(), [&topology](uint32_t a, uint32_t b) {
    return topology.degree(a) < topology.degree(b);
  });
  std::vector<float> weights;
  const auto count = static_cast<uint32_t>(nodes_.size());
  for (uint32_t i = 0; i < count;) {
    const uint64_t degree = topology.degree(nodes_[i]);
    uint32_t end = i + 1;
    while (end < count && topology.degree(nodes_[end]) == degree) ++end;
    const double root = std::sqrt(static_cast<double>(degree));
    weights.push_back(static_cast<float>(root * std::sqrt(root) * (end - i)));
    first_.push_back(i);
    i = end;
  }
  first_.push_back(count);
  table_.resize(weights.size());
  AliasBuilder().Build(weights, table_.data());
}

}  // namespace gnnd
