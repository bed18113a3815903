#include "train/tasks/row_targets.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace gnnd {
namespace {

// The rows [begin, end), sorted by their nodes.
std::vector<uint32_t> ByNode(std::span<const uint32_t> nodes_of_rows, uint64_t begin,
                             uint64_t end) {
  std::vector<uint32_t> rows(end - begin);
  std::iota(rows.begin(), rows.end(), static_cast<uint32_t>(begin));
  std::sort(rows.begin(), rows.end(), [&](uint32_t left, uint32_t right) {
    return nodes_of_rows[left] != nodes_of_rows[right] ? nodes_of_rows[left] < nodes_of_rows[right]
                                                       : left < right;
  });
  return rows;
}

Status Missing(uint32_t node) {
  return Status(Code::kInvalidArgument, "node " + std::to_string(node) + " was not propagated");
}

}  // namespace

Result<RowTargets> RowTargets::Of(const RowsToPredict& wanted,
                                  std::span<const uint32_t> nodes_of_rows) {
  RowTargets targets;
  if (wanted.num_nodes > 0) {
    targets.are_all = wanted.listed.empty();
    targets.nodes = wanted.listed;
    if (targets.are_all) {
      targets.nodes.resize(wanted.num_nodes);
      std::iota(targets.nodes.begin(), targets.nodes.end(), 0U);
    }
    if (!targets.nodes.empty() && targets.nodes.back() >= nodes_of_rows.size()) {
      return Missing(targets.nodes.back());
    }
    targets.rows = targets.nodes;
    return targets;
  }
  if (wanted.begin > wanted.end || wanted.end > nodes_of_rows.size()) {
    return Status(Code::kInvalidArgument, "rows to predict are not in the propagation");
  }
  for (const uint32_t row : ByNode(nodes_of_rows, wanted.begin, wanted.end)) {
    const uint32_t node = nodes_of_rows[row];
    if (!targets.nodes.empty() && targets.nodes.back() == node) continue;
    targets.nodes.push_back(node);
    targets.rows.push_back(row);
  }
  return targets;
}

Result<RowTargets> RowTargets::OfNodes(std::span<const uint32_t> wanted,
                                       std::span<const uint32_t> nodes_of_rows) {
  const std::vector<uint32_t> order = ByNode(nodes_of_rows, 0, nodes_of_rows.size());
  RowTargets targets;
  auto at = order.begin();
  for (const uint32_t node : wanted) {
    while (at != order.end() && nodes_of_rows[*at] < node) ++at;
    if (at == order.end() || nodes_of_rows[*at] != node) return Missing(node);
    targets.nodes.push_back(node);
    targets.rows.push_back(*at);
  }
  return targets;
}

std::vector<RowRun> RowTargets::RunsOf(uint64_t first, uint64_t end) const {
  std::vector<RowRun> runs;
  for (uint64_t i = first; i < end; ++i) {
    const bool begins = runs.empty() || runs.back().first + runs.back().count != rows[i];
    if (begins) runs.push_back({rows[i], 0});
    ++runs.back().count;
  }
  return runs;
}

}  // namespace gnnd
