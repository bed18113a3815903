#include "core/feature/favoured.h"

#include <algorithm>

#include "core/base/check.h"

namespace gnnd {

std::vector<double> LongerPaths(const TopologyView& topology, std::span<const double> paths) {
  GNND_CHECK(paths.size() == topology.num_nodes());
  std::vector<double> longer(paths.size());
  for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
    double sum = 0;
    for (uint64_t e = topology.indptr[v]; e < topology.indptr[v + 1]; ++e) {
      sum += paths[topology.indices[e]];
    }
    longer[v] = sum;
  }
  return longer;
}

std::vector<std::vector<uint32_t>> FavouredSets(const TopologyView& topology,
                                                std::span<const uint32_t> placed, uint32_t layers,
                                                uint32_t most) {
  std::vector<std::vector<uint32_t>> sets;
  std::vector<double> paths(topology.num_nodes());
  for (const uint32_t node : placed) paths[node] = 1;
  for (uint32_t layer = 0; layer < layers; ++layer) {
    std::vector<uint32_t>& nodes = sets.emplace_back();
    if (layer == 0) {
      nodes.assign(placed.begin(), placed.end());
      std::sort(nodes.begin(), nodes.end());
      continue;
    }
    paths = LongerPaths(topology, paths);
    for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
      if (paths[v] > 0) nodes.push_back(v);
    }
    const size_t kept = std::min<size_t>(most, nodes.size());
    std::partial_sort(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(kept), nodes.end(),
                      [&](uint32_t one, uint32_t other) {
                        return paths[one] != paths[other] ? paths[one] > paths[other] : one < other;
                      });
    nodes.resize(kept);
  }
  return sets;
}

}  // namespace gnnd
