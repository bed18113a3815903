#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/npy.h"
#include "core/graph/topology_view.h"

// Which nodes locality-aware sampling favours in a hop (Song and Jiang, ICS'22, section 4.2;
// core/draw/locality.h). In the last hop, whose picks are rows to extract: those that devices hold.
// In the hop before it: nodes whose rows lead there; and so on. Only those with the most paths: if
// all nodes were favoured, none would be.

namespace gnnd {

// From paths[j], the number of ways of some length from node j into a set, those of one edge
// more: per node the sum over its row. Doubles: they grow with each hop.
std::vector<double> LongerPaths(const TopologyView& topology, std::span<const double> paths);

// For hops of `layers`, the last one first: `placed` itself, ascending; then at most `most` nodes
// each of the most paths into it, by falling number, ties by rising id; those without any never.
std::vector<std::vector<uint32_t>> FavouredSets(const TopologyView& topology,
                                                std::span<const uint32_t> placed, uint32_t layers,
                                                uint32_t most);

// The same as a byte a node, bit h that of hop h, which is hops - 1 the last one's. REQUIRES: hops
// is at most 8.
std::vector<uint8_t> FavouredHops(const TopologyView& topology, std::span<const uint32_t> placed,
                                  uint32_t hops, uint32_t most);

// Writes such bytes as a .npy file, uint32, four nodes a word; whole or not at all. kIo.
Status WriteFavoured(std::span<const uint8_t> hops, const std::string& path);

// Such a file, mapped: one copy in the page cache serves all Samplers.
class FavouredMap {
 public:
  FavouredMap() = default;

  // Errors: those of NpyArray::Open; kDatasetCorrupt when it is not of `num_nodes` nodes.
  static Result<FavouredMap> Open(const std::string& path, uint32_t num_nodes);

  std::span<const uint8_t> hops() const;  // [num_nodes]; of none that was opened, empty

 private:
  NpyArray array_;
  uint32_t num_nodes_ = 0;
};

}  // namespace gnnd
