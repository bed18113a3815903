#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/executor/eval_scratch.h"
#include "core/executor/train_work.h"
#include "core/graph/node_numbers.h"
#include "train/evaluate/eval_plan.h"
#include "train/input/typed_rows.h"
#include "train/layers/model.h"
#include "train/layers/relational.h"
#include "train/ops/workspace.h"
#include "train/tasks/eval_targets.h"

// Exact evaluation of models over relations: full neighbourhoods, no dropout, each row of each
// level that is needed computed once. Level 0 are the projected input rows of all types, level l
// the rows that layer l - 1 gives. A phase is a level; a chunk are the nodes of all types whose
// numbers (core/graph/node_numbers.h) lie in its range.

namespace gnnd {

struct TypedPlan {
  std::vector<NodeSet> sets;    // [levels], of node numbers
  std::vector<bool> is_wanted;  // by layer
  uint64_t rows = 0;            // over all levels
  uint32_t chunk_nodes = 64;
  uint32_t chunks = 0;

  uint32_t phases() const { return static_cast<uint32_t>(sets.size()); }
};

// For use by one thread; uses the team's threads.
class TypedLayers {
 public:
  // Borrows both.
  TypedLayers(const TypedInput& input, const Model& model);

  // Plans how the wanted rows, of nodes of type 0, are computed.
  Result<TypedPlan> Plan(const EvalWanted& wanted, const Alive& alive);
  // Computes the rows of one chunk; `consume` takes those that are wanted.
  Status Run(const TypedPlan& plan, uint32_t phase, uint32_t chunk,
             std::span<const at::Tensor> parameters, const Alive& alive,
             const RowsConsumer& consume, uint64_t* rows);
  // Called when nobody reads the chunks' rows any more.
  void End();

  int scratch_fd() const { return scratch_ ? scratch_->fd() : -1; }
  uint64_t work_bytes() const { return memory_.reserved_bytes(); }

 private:
  Status OpenScratch();
  float* Level(uint32_t level) const;
  // All rows of a type at a level, [nodes of the type, hidden_dim].
  at::Tensor RowsOf(uint32_t level, uint32_t type) const;
  uint64_t BlockEnd(uint32_t level, uint32_t type, std::span<const uint32_t> nodes,
                    uint64_t begin) const;
  at::Tensor Gathered(const RowTable& table, std::span<const uint32_t> nodes);
  RelationInput InputOf(uint32_t relation, uint32_t level, std::span<const uint32_t> nodes);
  Status Give(const TypedPlan& plan, uint32_t level, std::span<const uint32_t> nodes,
              const float* values, const RowsConsumer& consume);
  at::Tensor Compute(uint32_t level, uint32_t type, std::span<const uint32_t> nodes,
                     std::span<const at::Tensor> parameters);

  const TypedInput& input_;
  const Model& model_;
  const NodeNumbers numbers_;
  std::optional<EvalScratch> scratch_;  // opened with the first plan
  Workspace memory_;                    // of a block
};

}  // namespace gnnd
