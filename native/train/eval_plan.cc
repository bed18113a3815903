#include "train/eval_plan.h"

#include <bit>

namespace gnnd {
namespace {

constexpr uint64_t kEdgesBetweenChecks = uint64_t{1} << 20;

// A set of nodes as bits; listing it is ascending.
class NodeSet {
 public:
  explicit NodeSet(uint32_t num_nodes) : words_((uint64_t{num_nodes} + 63) / 64) {}

  void Add(uint32_t node) { words_[node / 64] |= uint64_t{1} << (node % 64); }

  std::vector<uint32_t> List() const {
    uint64_t count = 0;
    for (const uint64_t word : words_) count += static_cast<uint64_t>(std::popcount(word));
    std::vector<uint32_t> nodes;
    nodes.reserve(count);
    for (uint64_t w = 0; w < words_.size(); ++w) {
      for (uint64_t word = words_[w]; word != 0; word &= word - 1) {
        nodes.push_back(static_cast<uint32_t>(w * 64) +
                        static_cast<uint32_t>(std::countr_zero(word)));
      }
    }
    return nodes;
  }

 private:
  std::vector<uint64_t> words_;
};

}  // namespace

Result<EvalPlan> PlanEvaluation(const TopologyView& topology, std::span<const uint32_t> targets,
                                uint32_t num_layers, const std::function<bool()>& alive) {
  EvalPlan plan;
  plan.outputs.resize(num_layers);
  NodeSet set(topology.num_nodes());
  for (const uint32_t node : targets) set.Add(node);
  plan.outputs[num_layers - 1] = set.List();
  uint64_t edges = 0;
  for (uint32_t layer = num_layers - 1; layer > 0; --layer) {
    for (const uint32_t node : plan.outputs[layer]) {
      for (uint64_t e = topology.indptr[node]; e < topology.indptr[node + 1]; ++e) {
        set.Add(topology.indices[e]);
      }
      edges += topology.degree(node) + 1;
      if (edges >= kEdgesBetweenChecks) {
        edges = 0;
        if (!alive()) return Status(Code::kAborted, "evaluation was told to stop");
      }
    }
    plan.outputs[layer - 1] = set.List();
  }
  return plan;
}

}  // namespace gnnd
