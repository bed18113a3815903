#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <utility>

#include "train/evaluate/chunk_evaluator.h"
#include "train/evaluate/eval_outcome.h"
#include "train/evaluate/exact_layers.h"
#include "train/evaluate/pair_phase.h"

namespace gnnd {

// The outcome of an evaluation whose last phase scores pairs: the nodes' rows stay in the memory
// that Trainers share. Borrows the layers that compute them.
class KeptRows final : public EvalOutcome {
 public:
  KeptRows(const PairPhase& pairs, const ExactLayers& layers)
      : EvalOutcome({layers.last()}, EvalTargets::Predicted(pairs.NodesOf(EvalNodes::kValidation)),
                    EvalTargets::Predicted(pairs.NodesOf(EvalNodes::kTest))),
        layers_(layers) {}
  Status Take(const EvalTask& task, const LayerRows& rows, EvalResult* result) override;

 private:
  const ExactLayers& layers_;
};

// First the rows of nodes, by another evaluator, then, in one more phase, what is asked of pairs of
// them, on the host.
class LinkEvaluator final : public ChunkEvaluator {
 public:
  // `rows` computes rows into `layers`' memory. Borrows all but it.
  LinkEvaluator(std::unique_ptr<ChunkEvaluator> rows, const Model& model, const ExactLayers& layers,
                PairPhase* pairs)
      : rows_(std::move(rows)), model_(model), layers_(layers), pairs_(*pairs) {}

  Result<EvalShape> Plan(EvalNodes nodes, const Alive& alive) override;
  Status RunChunk(const EvalTask& task, std::span<const at::Tensor> constants, const Alive& alive,
                  EvalResult* result) override;
  void End() override { rows_->End(); }
  int scratch_fd() const override { return rows_->scratch_fd(); }
  uint64_t work_bytes() const override { return rows_->work_bytes() + pairs_.work_bytes(); }

  Status UseDevice(DeviceSide& side, Workspace* memory) override {
    return rows_->UseDevice(side, memory);
  }
  void UseHost() override { rows_->UseHost(); }

 private:
  std::unique_ptr<ChunkEvaluator> rows_;
  const Model& model_;
  const ExactLayers& layers_;
  PairPhase& pairs_;
  struct Planned {
    EvalShape shape;              // of all phases
    uint32_t chunks_of_rows = 0;  // of the phases before the last; the others have nothing to do
  };
  Planned plans_[2];  // by EvalNodes
};

}  // namespace gnnd
