#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/npy.h"
#include "core/graph/topology_view.h"

// The nodes that locality-aware sampling favours in a hop (Song and Jiang, ICS'22, section 4.2;
// core/draw/locality.h). In the last hop, whose picks are rows to extract, they are the nodes whose
// rows devices hold; in each hop before it, the nodes with the most paths to those rows. Favouring
// all nodes would favour none.

namespace gnnd {

// Counts paths that are one edge longer: paths[j] is the number of paths of some length from node j
// into a set, and the result is per node the sum over its row. Doubles, because they grow.
std::vector<double> LongerPaths(const TopologyView& topology, std::span<const double> paths);

// The sets for hops of `layers`, the last hop first: `placed` itself, ascending; then for each hop
// at most `most` nodes with the most paths into it, by falling number, ties by rising id; nodes
// without a path are never in a set.
std::vector<std::vector<uint32_t>> FavouredSets(const TopologyView& topology,
                                                std::span<const uint32_t> placed, uint32_t layers,
                                                uint32_t most);

// The same sets as one byte per node: bit h for hop h, where hops - 1 is the last hop. REQUIRES:
// hops is at most 8.
std::vector<uint8_t> FavouredHops(const TopologyView& topology, std::span<const uint32_t> placed,
                                  uint32_t hops, uint32_t most);

// Writes FavouredHops' bytes as a .npy file, uint32, four nodes a word; whole or not at all. kIo.
Status WriteFavoured(std::span<const uint8_t> hops, const std::string& path);

// A mapped file of WriteFavoured: one copy in the page cache serves all Samplers.
class FavouredMap {
 public:
  FavouredMap() = default;

  // Errors: those of NpyArray::Open; kDatasetCorrupt when it has another number of nodes.
  static Result<FavouredMap> Open(const std::string& path, uint32_t num_nodes);

  std::span<const uint8_t> hops() const;  // [num_nodes]; empty if no file is open

 private:
  NpyArray array_;
  uint32_t num_nodes_ = 0;
};

}  // namespace gnnd
