#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/graph/topology_view.h"
#include "core/model/model_spec.h"

namespace gnnd {

// A set of nodes as bits.
class NodeSet {
 public:
  explicit NodeSet(uint32_t num_nodes) : words_((uint64_t{num_nodes} + 63) / 64) {}

  void Add(uint32_t node) { words_[node / 64] |= uint64_t{1} << (node % 64); }
  // Add that several threads may call at once.
  void AddShared(uint32_t node);
  // Appends the members of [begin, end), ascending; begin is a multiple of 64.
  void List(uint32_t begin, uint32_t end, std::vector<uint32_t>* nodes) const;
  bool Has(uint32_t node) const { return (words_[node / 64] >> (node % 64) & 1) != 0; }
  uint64_t Count() const;
  uint64_t bytes() const { return words_.size() * sizeof(uint64_t); }

 private:
  std::vector<uint64_t> words_;
};

// The graph of an evaluation. Borrows its memory.
struct EvalGraph {
  TopologyView topology;
  std::span<const float> edge_weights{};  // [num_edges] or empty, as TrainOptions has them
};

// One phase of exact evaluation: rows of one layer, or of its transformed input.
struct EvalPhase {
  uint32_t layer = 0;
  bool transforms = false;
  uint32_t set = 0;  // index of its nodes in EvalPlan::sets
};

// Nodes, ascending and distinct, and the layers whose rows of these nodes are wanted, ascending.
struct EvalWanted {
  std::span<const uint32_t> nodes{};
  std::span<const uint32_t> layers{};
};

// The plan of an exact evaluation of some nodes: each row of each layer is computed once. Layers
// above the highest wanted one have no phase.
struct EvalPlan {
  std::vector<NodeSet> sets;           // [depth + 1]: layer 0's inputs, each layer's outputs
  std::vector<bool> transforms_first;  // by layer
  std::vector<bool> is_wanted;         // by layer
  std::vector<EvalPhase> phases;       // in order; none without targets
  uint64_t rows = 0;                   // over all phases
  uint32_t chunk_nodes = 64;           // size of every phase's chunks
  uint32_t chunks = 0;
  const EvalGraph* graph = nullptr;  // along whose edges rows come

  // Number of layers that are computed.
  uint32_t depth() const { return static_cast<uint32_t>(is_wanted.size()); }
};

// Finds the rows that the wanted nodes reach, on the caller's team. kAborted when `alive`, called
// every few milliseconds, returns false. Borrows the graph as long as the plan lives.
Result<EvalPlan> PlanEvaluation(const EvalGraph& graph, const ModelSpec& spec,
                                const EvalWanted& wanted, const std::function<bool()>& alive);

}  // namespace gnnd
