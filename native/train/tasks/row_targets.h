#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/draw/row_order.h"

// Which rows of a propagation are predicted, and whose they are.

namespace gnnd {

struct RowsToPredict {
  // Of a propagation of all nodes, whose rows are in the order of ids: 0 = the rows are those of
  // labelled nodes, each split after the other.
  uint64_t num_nodes = 0;
  // Of the former: ascending, each once; empty: all.
  std::vector<uint32_t> listed;
  // Of the latter: rows [begin, end), a split.
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Rows in the order of their nodes.
struct RowTargets {
  std::vector<uint32_t> nodes;  // ascending, each once
  std::vector<uint32_t> rows;   // of each of them
  bool are_all = false;         // of the graph

  // `nodes_of_rows` is nodes.npy. kInvalidArgument for a row or node that is not there.
  static Result<RowTargets> Of(const RowsToPredict& wanted,
                               std::span<const uint32_t> nodes_of_rows);
  // Of `wanted` nodes, ascending, wherever their rows are. kInvalidArgument for one without a row.
  static Result<RowTargets> OfNodes(std::span<const uint32_t> wanted,
                                    std::span<const uint32_t> nodes_of_rows);

  // Of targets [first, end): rows that follow each other are one run.
  std::vector<RowRun> RunsOf(uint64_t first, uint64_t end) const;
};

}  // namespace gnnd
