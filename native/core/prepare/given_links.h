#pragma once

#include <span>
#include <string>

#include "core/base/status.h"
#include "core/prepare/message_files.h"

namespace gnnd {

// A dataset's edges, rows ascending, and their weights, if any.
struct GivenGraph {
  Edges edges;
  std::span<const float> weights;
  bool symmetric = false;  // every edge has its reverse
};

// Makes the message graph of a dataset with lists of its own, in `folder`, which may have files of
// the graph already; as MakeMessageGraph (message_graph.h) does with `given`.
Result<MessageGraphCounts> TakeGiven(const std::string& dataset, const GivenGraph& graph,
                                     bool keep_validation, const std::string& folder);

}  // namespace gnnd
