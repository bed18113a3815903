#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/dataset/topology_view.h"
#include "core/model/model_spec.h"
#include "core/run/train_work.h"
#include "train/eval_layer.h"
#include "train/eval_plan.h"
#include "train/logits_consumer.h"
#include "train/workspace.h"

namespace gnnd {

// Exact evaluation: layer by layer with full neighbourhoods, no dropout, over the nodes that the
// targets reach. Hidden layers' outputs lie in memory whole; where they would exceed memory_bytes
// the targets are halved until they fit (a single target is computed anyway). What the first layer
// aggregates from raw features does not depend on parameters: it is kept where it fits. How rows
// fall into parts and chunks shows in the last bits of logits: matrix products round by their
// height.
class Evaluator {
 public:
  // `model` is borrowed, too; `layer` computes its layers.
  Evaluator(const EvalInput& input, const Model& model, std::unique_ptr<LayerRunner> layer);

  // Loss and hits on the validation and test nodes. `parameters` in manifest order, float32, none
  // requiring a gradient; empty where the model is a script, which has them. kAborted when `alive`
  // returns false; kNumericDivergence when the validation loss is not finite.
  Status Run(std::span<const at::Tensor> parameters, const std::function<bool()>& alive,
             EvalReport* report);

  // Logits of `nodes` (ascending, each once), in parts.
  Status Predict(std::span<const at::Tensor> parameters, std::span<const uint32_t> nodes,
                 const std::function<bool()>& alive, const LogitsConsumer& consume);

  // Share of the running evaluation or prediction that is done, 0 to 1; for its `alive`.
  double progress() const { return progress_; }

 private:
  // Nodes to compute the logits of, in parts that fit into memory.
  struct Targets {
    std::vector<uint32_t> nodes;   // ascending, each once
    std::vector<uint64_t> bounds;  // of the parts
    EvalPlan plan;                 // of all, where they are one part
    bool keeps_aggregates = false;
  };
  static std::vector<uint32_t> SortedOnce(std::vector<uint32_t> nodes);
  Result<EvalPlan> PlanOf(std::span<const uint32_t> targets,
                          const std::function<bool()>& alive) const;
  Status PlanParts(Targets* targets, const std::function<bool()>& alive) const;
  Status RunParts(Targets* targets, std::span<const at::Tensor> parameters,
                  const std::function<bool()>& alive, const LogitsConsumer& consume);
  Status RunPlan(const EvalPlan& plan, bool keep, std::span<const at::Tensor> parameters,
                 const std::function<bool()>& alive, const LogitsConsumer& consume);
  Status RunLayer(const LayerTask& task, bool keep, const std::function<bool()>& alive, float* out);
  void Count(std::span<const uint32_t> targets, const float* logits, EvalReport* report) const;
  uint64_t BytesOf(const EvalPlan& plan) const;
  // Rows that layer `layer` reads and writes. Where a layer transforms its input rows first, the
  // plan lists those of layer 0, too.
  const std::vector<uint32_t>& OutputsOf(const EvalPlan& plan, uint32_t layer) const;

  EvalInput input_;
  const Model& model_;
  Targets targets_;  // validation and test nodes
  std::unique_ptr<LayerRunner> layer_;
  double progress_ = 0;
  double progress_per_row_ = 0;  // of the part that is computed
  double num_targets_ = 0;       // of the run
  Workspace layers_;             // outputs of layers
  Workspace kept_;               // the first layer's aggregates
  float* kept_aggregates_ = nullptr;
};

}  // namespace gnnd
