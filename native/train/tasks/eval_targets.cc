#include "train/tasks/eval_targets.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gnnd {

EvalTargets::EvalTargets(std::span<const int64_t> nodes) {
  std::transform(nodes.begin(), nodes.end(), std::back_inserter(all_),
                 [](int64_t node) { return static_cast<uint32_t>(node); });
  std::sort(all_.begin(), all_.end());
  std::unique_copy(all_.begin(), all_.end(), std::back_inserter(once_));
}

EvalTargets EvalTargets::Predicted(std::vector<uint32_t> nodes) {
  EvalTargets targets;
  targets.once_ = std::move(nodes);
  return targets;
}

Status EvalTargets::Count(const EvalTask& task, std::span<const uint32_t> nodes,
                          std::span<const float> logits, const NodeTargets& targets,
                          EvalResult* result) const {
  const bool with_loss = task.run.nodes == EvalNodes::kValidation;
  EvalCount count(targets, with_loss, task.kept, result);
  auto target = std::lower_bound(all_.begin(), all_.end(), nodes.front());
  for (uint64_t r = 0; r < nodes.size(); ++r) {
    const auto row = logits.subspan(r * targets.width, targets.width);
    for (; target != all_.end() && *target == nodes[r]; ++target) {
      count.Add(nodes[r], static_cast<uint64_t>(target - all_.begin()), row);
    }
  }
  return count.Finish();
}

}  // namespace gnnd
