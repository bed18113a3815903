#pragma once

#include <cstdint>
#include <vector>

#include "core/draw/alias.h"
#include "core/draw/philox.h"
#include "core/graph/topology_view.h"

namespace gnnd {

// Draws nodes in proportion to degree^0.75, degree being the length of their row, as word2vec and
// its successors draw negatives; a node without neighbours is never drawn. Nodes of a degree are
// drawn alike, so there is an alias table over the degrees that occur, and a list of nodes by
// degree: 4 bytes a node. The powers are products of square roots, which are exactly rounded, so
// every process has the same table.
class DegreeNodes {
 public:
  explicit DegreeNodes(const TopologyView& topology);

  // Whether no node has a neighbour.
  bool empty() const { return nodes_.empty(); }
  // The node that these words draw (core/draw/negatives.h). REQUIRES: !empty().
  uint32_t Draw(const PhiloxWords& words) const {
    const auto slots = static_cast<uint32_t>(table_.size());
    const uint32_t slot = BoundedDraw(words.word[0], slots);
    const uint32_t degree = ChosenOf(table_[slot], slot, words.word[1]);
    const uint32_t first = first_[degree];
    const uint32_t count = first_[degree + 1] - first;
    return nodes_[first + WideBoundedDraw(words.word[2], words.word[3], count)];
  }

 private:
  std::vector<uint32_t> nodes_;    // by degree, then by id
  std::vector<uint32_t> first_;    // [degrees + 1], into nodes_
  std::vector<AliasEntry> table_;  // [degrees]
};

}  // namespace gnnd
