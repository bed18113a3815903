#include "train/evaluate/eval_plan.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "core/base/check.h"
#include "core/executor/eval_scratch.h"
#include "train/layers/layer.h"
#include "train/ops/parallel.h"
#include "train/tasks/eval_targets.h"

namespace gnnd {
namespace {

constexpr uint32_t kNodesBetweenChecks = 1U << 16;
constexpr uint32_t kGrainNodes = 256;

// Adds the in-neighbours of `from`'s members to `to`, and counts the edges.
Status Expand(const TopologyView& topology, const NodeSet& from, const std::function<bool()>& alive,
              NodeSet* to, uint64_t* edges) {
  std::vector<uint32_t> nodes;
  for (uint64_t begin = 0; begin < topology.num_nodes(); begin += kNodesBetweenChecks) {
    if (!alive()) return EvaluationAborted();
    nodes.clear();
    from.List(static_cast<uint32_t>(begin),
              static_cast<uint32_t>(
                  std::min<uint64_t>(topology.num_nodes(), begin + kNodesBetweenChecks)),
              &nodes);
    for (const uint32_t node : nodes) *edges += topology.degree(node);
    ParallelRows(static_cast<uint32_t>(nodes.size()), kGrainNodes,
                 [&](uint32_t first, uint32_t last) {
                   for (uint32_t i = first; i < last; ++i) {
                     const uint64_t end = topology.indptr[nodes[i] + 1];
                     for (uint64_t e = topology.indptr[nodes[i]]; e < end; ++e) {
                       to->AddShared(topology.indices[e]);
                     }
                   }
                 });
  }
  return Status::Ok();
}

}  // namespace

void NodeSet::AddShared(uint32_t node) {
  std::atomic_ref<uint64_t> word(words_[node / 64]);
  const uint64_t bit = uint64_t{1} << (node % 64);
  // Most are members already, and reading is cheaper than a locked write.
  if ((word.load(std::memory_order_relaxed) & bit) == 0) {
    word.fetch_or(bit, std::memory_order_relaxed);
  }
}

void NodeSet::List(uint32_t begin, uint32_t end, std::vector<uint32_t>* nodes) const {
  for (uint64_t w = begin / 64; w * 64 < end; ++w) {
    for (uint64_t word = words_[w]; word != 0; word &= word - 1) {
      const auto node =
          static_cast<uint32_t>(w * 64) + static_cast<uint32_t>(std::countr_zero(word));
      if (node < end) nodes->push_back(node);
    }
  }
}

uint64_t NodeSet::Count() const {
  uint64_t count = 0;
  for (const uint64_t word : words_) count += static_cast<uint64_t>(std::popcount(word));
  return count;
}

Result<EvalPlan> PlanEvaluation(const EvalGraph& graph, const ModelSpec& spec,
                                const EvalWanted& wanted, const std::function<bool()>& alive) {
  const TopologyView& topology = graph.topology;
  EvalPlan plan;
  plan.graph = &graph;
  if (wanted.nodes.empty() || wanted.layers.empty()) return plan;
  const uint32_t layers = wanted.layers.back() + 1;
  GNND_CHECK(layers <= spec.num_layers);
  plan.is_wanted.resize(layers);
  for (const uint32_t layer : wanted.layers) plan.is_wanted[layer] = true;
  plan.sets.assign(uint64_t{layers} + 1, NodeSet(topology.num_nodes()));
  plan.transforms_first.resize(layers);
  for (const uint32_t node : wanted.nodes) plan.sets[layers].Add(node);
  std::vector<uint64_t> counts(uint64_t{layers} + 1);
  counts[layers] = plan.sets[layers].Count();
  for (uint32_t layer = layers; layer-- > 0;) {
    uint64_t edges = 0;
    plan.sets[layer] = plan.sets[uint64_t{layer} + 1];
    GNND_TRY(Expand(topology, plan.sets[uint64_t{layer} + 1], alive, &plan.sets[layer], &edges));
    counts[layer] = plan.sets[layer].Count();
    plan.transforms_first[layer] =
        MayTransform(spec, layer) &&
        (KindOf(spec.type).always_transforms ||
         TransformFirst(counts[uint64_t{layer} + 1], counts[layer], edges, ShapeOf(spec, layer).in,
                        TransformedColumns(spec, layer)));
  }
  for (uint32_t layer = 0; layer < layers; ++layer) {
    if (plan.transforms_first[layer]) plan.phases.push_back({layer, true, layer});
    plan.phases.push_back({layer, false, layer + 1});
  }
  uint64_t most = 0;
  for (const EvalPhase& phase : plan.phases) {
    plan.rows += counts[phase.set];
    most = std::max(most, counts[phase.set]);
  }
  plan.chunk_nodes = EvalChunkNodes(topology.num_nodes(), most);
  plan.chunks = static_cast<uint32_t>((uint64_t{topology.num_nodes()} + plan.chunk_nodes - 1) /
                                      plan.chunk_nodes);
  return plan;
}

}  // namespace gnnd
