#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/dataset/topology_view.h"

namespace gnnd {

// Which nodes exact evaluation of some targets must compute at each layer.
struct EvalPlan {
  // outputs[l], ascending: the nodes whose output of layer l is needed. The last are the targets
  // (each once); outputs[l - 1] are those of outputs[l] and all their in-neighbours.
  std::vector<std::vector<uint32_t>> outputs;
};

// kAborted when `alive`, asked every few milliseconds, returns false.
Result<EvalPlan> PlanEvaluation(const TopologyView& topology, std::span<const uint32_t> targets,
                                uint32_t num_layers, const std::function<bool()>& alive);

}  // namespace gnnd
