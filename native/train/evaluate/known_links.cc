#include "train/evaluate/known_links.h"

#include <algorithm>

#include "train/evaluate/pair_outputs.h"
#include "train/tasks/eval_targets.h"

namespace gnnd {
namespace {

constexpr uint64_t kBlockLinks = 4096;

}  // namespace

std::vector<uint32_t> KnownLinkLabels::NodesOf(EvalNodes which) const {
  return EndsOf(SetOf(which).ends, num_nodes_);
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
    const at::Tensor outputs =
        OutputsOfPairs(head_, rows, set.ends.subspan(2 * first, 2 * (end - first)), &memory_);
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
