#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/huge_array.h"
#include "core/base/status.h"
#include "core/graph/npy.h"

// The one order that all caching follows: nodes by hotness. A node's position in it is
// its hot rank; every cache is a prefix, so a row's place in a cache is its node's rank.

namespace gnnd {

// Nodes by falling hotness, ties by rising id: order[rank] = node. Hotness is finite and not
// negative.
std::vector<uint32_t> OrderByHotness(std::span<const float> hotness);

// Rows in a cache of share `alpha` (0 to 1) of `num_nodes`: floor(alpha * num_nodes).
uint64_t CacheRows(double alpha, uint32_t num_nodes);

// Writes `order` and its inverse as a .npy file, uint32 [2, num_nodes]: row 0 the node of each
// rank, row 1 the rank of each node. The file appears whole or not at all. kIo.
Status WriteHotOrder(std::span<const uint32_t> order, const std::string& path);

// A mapped file of WriteHotOrder: one copy in the page cache serves all executors.
class HotOrder {
 public:
  HotOrder() = default;

  // Errors: those of NpyArray::Open; kDatasetCorrupt when it has another number of nodes.
  static Result<HotOrder> Open(const std::string& path, uint32_t num_nodes);

  std::span<const uint32_t> order() const { return all().first(num_nodes_); }  // node of a rank
  std::span<const uint32_t> ranks() const { return all().last(num_nodes_); }   // rank of a node

 private:
  std::span<const uint32_t> all() const { return array_.values<uint32_t>(); }

  NpyArray array_;
  uint32_t num_nodes_ = 0;
};

// The rank in a record of a node that is in no Trainer's cache.
inline constexpr uint32_t kNoRank = 0xFFFFFFFF;

// Looks up the ranks of a record's nodes (M stage). Takes 4 bytes per node, on 2 MiB pages.
class RankTable {
 public:
  // Ranks from `largest_cache` on are kNoRank.
  RankTable(std::span<const uint32_t> ranks, uint64_t largest_cache);

  // out[i] = rank of nodes[i].
  void Mark(std::span<const uint32_t> nodes, uint32_t* out) const;

 private:
  HugeArray<uint32_t> ranks_;
};

}  // namespace gnnd
