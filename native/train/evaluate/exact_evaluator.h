#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>

#include "train/evaluate/chunk_evaluator.h"
#include "train/evaluate/eval_outcome.h"
#include "train/evaluate/exact_layers.h"

namespace gnnd {

// Evaluation by exact layers: full neighbourhoods, no dropout.
class ExactEvaluator final : public ChunkEvaluator {
 public:
  // Borrows all.
  ExactEvaluator(ExactLayers* layers, EvalOutcome* outcome)
      : layers_(*layers), outcome_(*outcome) {}

  Result<EvalShape> Plan(EvalNodes nodes, const Alive& alive) override;
  Status RunChunk(const EvalTask& task, std::span<const at::Tensor> constants, const Alive& alive,
                  EvalResult* result) override;
  void End() override { layers_.End(); }
  int scratch_fd() const override { return layers_.scratch_fd(); }
  uint64_t work_bytes() const override;

  Status UseDevice(DeviceSide& side, Workspace* memory) override {
    return layers_.UseDevice(side, memory);
  }
  void UseHost() override { layers_.UseHost(); }

 private:
  ExactLayers& layers_;
  EvalOutcome& outcome_;
  std::optional<EvalPlan> plans_[2];  // by EvalNodes
};

}  // namespace gnnd
