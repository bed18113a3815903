#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/draw/row_order.h"

// The rows of a propagation that are predicted, and their nodes.

namespace gnnd {

struct RowsToPredict {
  // Number of nodes if the propagation has the rows of all nodes, in the order of ids; 0 if it has
  // those of labelled nodes, one split after the other.
  uint64_t num_nodes = 0;
  // With all nodes: the ids to predict, ascending and distinct; empty: all.
  std::vector<uint32_t> listed;
  // With labelled nodes: the rows [begin, end) of a split.
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Rows in the order of their nodes.
struct RowTargets {
  std::vector<uint32_t> nodes;  // ascending and distinct
  std::vector<uint32_t> rows;   // row of each node
  bool are_all = false;         // whether they are all nodes of the graph

  // `nodes_of_rows` is nodes.npy. kInvalidArgument for a row or node that does not exist.
  static Result<RowTargets> Of(const RowsToPredict& wanted,
                               std::span<const uint32_t> nodes_of_rows);
  // The targets for `wanted` nodes, ascending, wherever their rows are. kInvalidArgument for a node
  // without a row.
  static Result<RowTargets> OfNodes(std::span<const uint32_t> wanted,
                                    std::span<const uint32_t> nodes_of_rows);

  // The runs of targets [first, end): consecutive rows form one run.
  std::vector<RowRun> RunsOf(uint64_t first, uint64_t end) const;
};

}  // namespace gnnd
