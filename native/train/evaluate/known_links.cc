#include "train/evaluate/known_links.h"

#include <algorithm>

#include "train/evaluate/eval_plan.h"
#include "train/ops/ops.h"
#include "train/tasks/eval_targets.h"

namespace gnnd {
namespace {

constexpr uint64_t kBlockLinks = 4096;

}  // namespace

std::vector<uint32_t> KnownLinkLabels::NodesOf(EvalNodes which) const {
  const LinkSet& set = SetOf(which);
  std::vector<uint32_t> nodes;
  if (set.size() == 0) return nodes;
  NodeSet needed(num_nodes_);
  for (const uint32_t node : set.ends) needed.Add(node);
  needed.List(0, num_nodes_, &nodes);
  return nodes;
}

Status KnownLinkLabels::Run(const EvalTask& task, uint32_t chunks, const Rows& rows,
                            const Alive& alive, EvalResult* result) {
  const EvalNodes which = task.run.nodes;
  const LinkSet& set = SetOf(which);
  *result = EvalResult{};
  EvalCount count(use_.labels->evaluated[static_cast<uint32_t>(which)],
                  which == EvalNodes::kValidation, task.kept, result);
  const uint64_t blocks = (set.size() + kBlockLinks - 1) / kBlockLinks;
  const uint64_t last = blocks * (uint64_t{task.chunk} + 1) / chunks;
  for (uint64_t block = blocks * task.chunk / chunks; block < last; ++block) {
    if (!alive()) return EvaluationAborted();
    memory_.Reset();
    const uint64_t first = block * kBlockLinks;
    const uint64_t end = std::min(set.size(), first + kBlockLinks);
    std::vector<uint32_t> sources;
    std::vector<uint32_t> destinations;
    for (uint64_t link = first; link < end; ++link) {
      sources.push_back(set.source(link));
      destinations.push_back(set.destination(link));
    }
    const at::Tensor outputs =
        head_
            .OfPairs({rows.head, &memory_}, GatheredRows<float>(rows.table, sources, &memory_),
                     GatheredRows<float>(rows.table, destinations, &memory_))
            .contiguous();
    const auto width = static_cast<uint64_t>(outputs.size(1));
    const float* const values = outputs.const_data_ptr<float>();
    for (uint64_t link = first; link < end; ++link) {
      count.Add(link, link, {values + (link - first) * width, width});
    }
    result->rows += end - first;
  }
  return count.Finish();
}

}  // namespace gnnd
