#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/executor/eval_scratch.h"
#include "core/executor/train_work.h"
#include "train/evaluate/eval_layer.h"
#include "train/evaluate/eval_plan.h"
#include "train/ops/workspace.h"
#include "train/tasks/eval_targets.h"

namespace gnnd {

// Exact evaluation in chunks (core/ledger/evaluation.h): layer by layer with full neighbourhoods
// and no dropout, over the rows that the targets reach; each row of each layer is computed once. A
// chunk is the rows of a phase whose node ids lie in its range.
class Evaluator {
 public:
  // Borrows options and model; `layer` computes the model's layers.
  Evaluator(const TrainOptions& options, const Model& model, std::unique_ptr<LayerRunner> layer);

  // As in TrainWork. `parameters` are in manifest order, float32, none requiring a gradient; empty
  // for a script, which holds its own.
  Result<EvalShape> Plan(EvalNodes nodes, const Alive& alive);
  Status RunChunk(const EvalTask& task, std::span<const at::Tensor> parameters, const Alive& alive,
                  EvalResult* result);
  void End();
  // From now on targets are predicted into these files instead of counted; borrowed.
  void PredictInto(PredictionFiles* files) { predictions_ = files; }
  // From now on this object computes the layers.
  void Use(std::unique_ptr<LayerRunner> layer) { layer_ = std::move(layer); }
  // The file of hidden rows; < 0 before a plan.
  int scratch_fd() const { return scratch_ ? scratch_->fd() : -1; }

  // Gives the logits of `nodes` (ascending, distinct) to `consume`, in parts.
  Status Predict(std::span<const at::Tensor> parameters, std::span<const uint32_t> nodes,
                 const Alive& alive, const LogitsConsumer& consume);
  // Share of the running prediction that is done, 0 to 1; for use by its `alive`.
  double progress() const { return progress_; }

  // Private memory of plans and blocks.
  uint64_t work_bytes() const;

 private:
  Status OpenScratch();
  LayerTask TaskOf(const EvalPlan& plan, const EvalPhase& phase,
                   std::span<const at::Tensor> parameters) const;
  // Computes the rows of one chunk. `consume` takes them if the phase is the last.
  Status RunRows(const EvalPlan& plan, const EvalPhase& phase, uint32_t chunk,
                 std::span<const at::Tensor> parameters, const Alive& alive,
                 const LogitsConsumer& consume, uint64_t* rows);
  void RunBlock(const LayerTask& task, std::span<const uint32_t> nodes, float* hidden);

  const TrainOptions& options_;
  const Model& model_;
  std::unique_ptr<LayerRunner> layer_;
  EvalLayout layout_;
  std::optional<EvalScratch> scratch_;
  PredictionFiles* predictions_ = nullptr;
  EvalTargets targets_[2];  // by EvalNodes, like plans_
  std::optional<EvalPlan> plans_[2];
  Workspace out_;  // a block's rows if they are not contiguous, and logits
  double progress_ = 0;
};

}  // namespace gnnd
