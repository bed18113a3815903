#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "core/graph/dataset.h"
#include "core/graph/npy.h"
#include "node/tables.h"

// The selection of nodes to predict.

namespace gnnd::node {

enum class PredictedNodes { kAll, kTrain, kVal, kTest, kListed };
template <>
inline constexpr auto kNames<PredictedNodes> =
    NamesOf<PredictedNodes>("PredictedNodes", {{"ALL", PredictedNodes::kAll},
                                               {"TRAINING", PredictedNodes::kTrain},
                                               {"VAL", PredictedNodes::kVal},
                                               {"TEST", PredictedNodes::kTest},
                                               {"LISTED", PredictedNodes::kListed}});

// Reads a file of uint32 node ids, ascending and distinct.
inline Result<std::vector<uint32_t>> ListedNodes(const std::string& path) {
  const NpyArray array = GNND_VALUE(NpyArray::Open(path));
  GNND_TRY(array.Expect({NpyType::kUint32}, {array.size()}));
  const auto values = array.values<uint32_t>();
  std::vector<uint32_t> nodes(values.begin(), values.end());
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

// The nodes to predict, ascending and distinct. `list` is a file of uint32 for kListed.
// kDatasetCorrupt if it has a node that is not in the graph.
// `dataset` is a Dataset, or a TypedDataset whose type 0 has the nodes; `num_nodes` are of it.
template <typename AnyDataset>
Result<std::vector<uint32_t>> NodesOf(const AnyDataset& dataset, uint32_t num_nodes,
                                      PredictedNodes which, const std::string& list) {
  std::vector<uint32_t> nodes;
  if (which == PredictedNodes::kAll) {
    nodes.resize(num_nodes);
    std::iota(nodes.begin(), nodes.end(), 0U);
    return nodes;
  }
  if (which == PredictedNodes::kListed) {
    nodes = GNND_VALUE(ListedNodes(list));
  } else {
    const auto split = which == PredictedNodes::kTrain ? dataset.train()
                       : which == PredictedNodes::kVal ? dataset.val()
                                                       : dataset.test();
    for (const int64_t node : split) nodes.push_back(static_cast<uint32_t>(node));
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  if (nodes.empty() || nodes.back() < num_nodes) return nodes;
  return Status(Code::kDatasetCorrupt, "node " + std::to_string(nodes.back()) +
                                           " to predict is not one of the graph's " +
                                           std::to_string(num_nodes));
}

}  // namespace gnnd::node
