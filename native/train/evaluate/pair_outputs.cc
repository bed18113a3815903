#include "train/evaluate/pair_outputs.h"

#include "train/evaluate/eval_plan.h"
#include "train/ops/ops.h"

namespace gnnd {

at::Tensor OutputsOfPairs(const PairHead& head, const PairPhase::Rows& rows,
                          std::span<const uint32_t> pairs, Workspace* memory) {
  std::vector<uint32_t> sources;
  std::vector<uint32_t> destinations;
  for (size_t at = 0; at < pairs.size(); at += 2) {
    sources.push_back(pairs[at]);
    destinations.push_back(pairs[at + 1]);
  }
  return head
      .OfPairs({rows.head, memory}, GatheredRows<float>(rows.table, sources, memory),
               GatheredRows<float>(rows.table, destinations, memory))
      .contiguous();
}

std::vector<uint32_t> EndsOf(std::span<const uint32_t> pairs, uint32_t num_nodes) {
  std::vector<uint32_t> nodes;
  if (pairs.empty()) return nodes;
  NodeSet needed(num_nodes);
  for (const uint32_t node : pairs) needed.Add(node);
  needed.List(0, num_nodes, &nodes);
  return nodes;
}

}  // namespace gnnd
