#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/dataset/topology_view.h"
#include "core/model/model_spec.h"
#include "core/run/train_work.h"
#include "train/eval_plan.h"
#include "train/workspace.h"

namespace gnnd {

// Borrowed; must outlive the evaluator.
struct EvalInput {
  ModelSpec model;
  std::span<const float> features;  // [num_nodes, in_dim]
  std::span<const int32_t> labels;  // [num_nodes]
  TopologyView topology;
  std::span<const int64_t> val_nodes;
  std::span<const int64_t> test_nodes;
  uint64_t memory_bytes = 0;
};

// Exact evaluation: layer by layer with full neighbourhoods, no dropout, over the nodes that the
// validation and test nodes reach. Hidden layers' outputs lie in memory whole; where they would
// exceed memory_bytes the targets are halved until they fit (a single target is computed anyway).
// What the first layer aggregates does not depend on parameters: it is kept where it fits.
class Evaluator {
 public:
  explicit Evaluator(const EvalInput& input);

  // `parameters` in manifest order, float32, none requiring a gradient. kAborted when `alive`
  // returns false; kNumericDivergence when the validation loss is not finite.
  Status Run(std::span<const at::Tensor> parameters, const std::function<bool()>& alive,
             EvalReport* report);

 private:
  struct Chunk;

  Status PlanRanges(const std::function<bool()>& alive);
  Status RunTargets(const EvalPlan& plan, std::span<const at::Tensor> parameters,
                    const std::function<bool()>& alive, EvalReport* report);
  Status RunLayer(const EvalPlan& plan, uint32_t layer, std::span<const at::Tensor> parameters,
                  const std::function<bool()>& alive, std::span<const float> in, float* out);
  void RunChunk(const Chunk& chunk, std::span<const at::Tensor> parameters);
  void AggregateChunk(const Chunk& chunk, float* out);
  void CountTargets(const EvalPlan& plan, const float* logits, EvalReport* report) const;
  uint64_t BytesOf(const EvalPlan& plan) const;

  EvalInput input_;
  std::vector<uint32_t> targets_;  // validation and test nodes, ascending, each once
  std::vector<uint64_t> ranges_;   // bounds of the parts of targets_ evaluated at a time
  EvalPlan plan_;                  // of all targets, where they are one range
  std::vector<float> node_norm_;   // GCN: 1 / sqrt(degree + 1)
  std::vector<uint32_t> row_of_;   // row of a node in the present layer's input
  Workspace layers_;               // outputs of layers
  Workspace chunk_;                // of one chunk
  Workspace kept_;                 // the first layer's aggregates
  float* kept_aggregates_ = nullptr;
  bool keep_aggregates_ = false;
};

}  // namespace gnnd
