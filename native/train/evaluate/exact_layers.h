#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "core/base/status.h"
#include "core/executor/eval_scratch.h"
#include "core/executor/train_work.h"
#include "train/device/device_side.h"
#include "train/evaluate/eval_layer.h"
#include "train/evaluate/eval_plan.h"
#include "train/input/block_input.h"
#include "train/ops/workspace.h"
#include "train/tasks/eval_targets.h"

namespace gnnd {

// A model's layers over a graph, one after the other, with full neighbourhoods and no dropout: each
// row of each layer that is needed is computed once. A chunk is the rows of a phase whose node ids
// lie in its range.
class ExactLayers {
 public:
  // Borrows input and model. `host` makes what computes a layer on the processor.
  using MakeRunner = std::function<std::unique_ptr<LayerRunner>()>;
  ExactLayers(const BlockInput& input, const Model& model, MakeRunner host);

  // Plans how the wanted rows are computed, over the graph of batches, or over that of the test.
  Result<EvalPlan> Plan(const EvalWanted& wanted, const Alive& alive,
                        EvalNodes nodes = EvalNodes::kValidation);
  // Computes the rows of one chunk. `consume` takes those that are wanted. `parameters` are
  // in manifest order, float32, none requiring a gradient; empty for a script, which holds its own.
  Status Run(const EvalPlan& plan, const EvalPhase& phase, uint32_t chunk,
             std::span<const at::Tensor> parameters, const Alive& alive,
             const RowsConsumer& consume, uint64_t* rows);
  // Called when nobody reads the chunks' rows any more.
  void End();

  // The layer that gives logits, or the rows that a head takes.
  uint32_t last() const { return model_.spec.num_layers - 1; }
  // Where the rows of the last layer lie by node id, [num_nodes, out_dim], if the model has a head;
  // whoever consumes them writes them there. REQUIRES: a plan was made.
  std::span<float> last_rows() const;

  // As in ChunkEvaluator.
  Status UseDevice(DeviceSide& side, Workspace* memory);
  void UseHost() { runner_ = host_(); }
  int scratch_fd() const { return scratch_ ? scratch_->fd() : -1; }
  uint64_t work_bytes() const { return runner_->reserved_bytes() + out_.reserved_bytes(); }

 private:
  Status OpenScratch();
  // Rows of a hidden layer by node id, until the layer after the next one is computed.
  float* HiddenRows(uint32_t layer) const;
  LayerTask TaskOf(const EvalPlan& plan, const EvalPhase& phase,
                   std::span<const at::Tensor> parameters) const;
  void RunBlock(const LayerTask& task, std::span<const uint32_t> nodes, float* hidden);
  Status GiveHidden(const EvalPlan& plan, uint32_t layer, std::span<const uint32_t> nodes,
                    const RowsConsumer& consume);

  const BlockInput& input_;
  const Model& model_;
  const EvalGraph graph_;
  std::optional<EvalGraph> test_graph_;  // where test links are told by another
  MakeRunner host_;
  std::unique_ptr<LayerRunner> runner_;
  EvalLayout layout_;
  std::optional<EvalScratch> scratch_;  // opened with the first plan
  Workspace out_;                       // a block's rows where they do not lie together, and those
                                        // of the highest layer
};

}  // namespace gnnd
