#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/topology_view.h"
#include "train/input/link_use.h"

namespace gnnd {

// Where nodes lie in a list that may repeat them, found in constant time.
class PlacesOf {
 public:
  // Borrows the list until the next call.
  void Set(std::span<const uint32_t> nodes);
  // Calls visit(place) for each place of a node.
  template <typename Visit>
  void Each(uint32_t node, const Visit& visit) const;

  uint32_t least() const { return least_; }
  uint32_t greatest() const { return greatest_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // The slot that has a node's last place, or would have it.
  uint32_t SlotOf(uint32_t node) const;

  std::span<const uint32_t> nodes_;
  std::vector<uint32_t> slots_;   // places, by a hash of their node; kNone where there is none
  std::vector<uint32_t> before_;  // [nodes]: the place before it of the same node, or kNone
  uint32_t shift_ = 0;            // 32 less the logarithm of the number of slots
  uint32_t least_ = 0;
  uint32_t greatest_ = 0;
};

// Pairs that a ranking must not count as negatives: a node with itself, edges of the graph that
// messages use, and the links of given sets, in both directions where the graph has both. For
// use by one thread. Borrows the topology, whose rows are sorted.
class KnownPairs {
 public:
  KnownPairs(const TopologyView& topology, std::span<const LinkSet> sets, bool symmetric);

  // Marks marks[d * sources.size() + s] = 1 if sources[s] and destinations[d] are a known pair, and
  // appends each place that was not marked before to `places`.
  void Mark(std::span<const uint32_t> sources, std::span<const uint32_t> destinations,
            std::vector<uint8_t>* marks, std::vector<uint64_t>* places);

  uint64_t bytes() const {
    return listed_.size() * sizeof(uint32_t) + first_.size() * sizeof(uint64_t) + bits_.size() / 8;
  }

 private:
  void SetBits(std::span<const uint32_t> nodes, bool value);

  template <typename Found>
  void ByRowsOfSources(std::span<const uint32_t> sources, const Found& found);
  template <typename Found>
  void ByRowsOfDestinations(std::span<const uint32_t> destinations, const Found& found);
  template <typename Found>
  void Listed(std::span<const uint32_t> sources, const Found& found) const;

  const TopologyView& topology_;
  const bool symmetric_;
  std::vector<uint64_t> first_;   // [nodes + 1]: where each source's destinations are in listed_
  std::vector<uint32_t> listed_;  // destinations of links that are evaluated
  std::vector<bool> bits_;        // by node; all false between calls
  PlacesOf sources_;
  PlacesOf destinations_;
};

}  // namespace gnnd
