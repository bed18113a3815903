#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <utility>

#include "train/evaluate/chunk_evaluator.h"
#include "train/evaluate/eval_outcome.h"
#include "train/evaluate/exact_layers.h"
#include "train/evaluate/link_ranking.h"

namespace gnnd {

// The outcome of an evaluation of links: the nodes' rows stay in the memory that Trainers share.
// Borrows the layers that compute them.
class KeptRows final : public EvalOutcome {
 public:
  KeptRows(const LinkRanking& ranking, const ExactLayers& layers)
      : EvalOutcome({layers.last()},
                    EvalTargets::Predicted(ranking.NodesOf(EvalNodes::kValidation)),
                    EvalTargets::Predicted(ranking.NodesOf(EvalNodes::kTest))),
        layers_(layers) {}
  Status Take(const EvalTask& task, const LayerRows& rows, EvalResult* result) override;

 private:
  const ExactLayers& layers_;
};

// Evaluates links: first their ends' and negatives' rows, by another evaluator, then, in one more
// phase, their ranks, on the host.
class LinkEvaluator final : public ChunkEvaluator {
 public:
  // `rows` computes rows into `layers`' memory. Borrows all but it.
  LinkEvaluator(std::unique_ptr<ChunkEvaluator> rows, const Model& model, const ExactLayers& layers,
                LinkRanking* ranking)
      : rows_(std::move(rows)), model_(model), layers_(layers), ranking_(*ranking) {}

  Result<EvalShape> Plan(EvalNodes nodes, const Alive& alive) override;
  Status RunChunk(const EvalTask& task, std::span<const at::Tensor> constants, const Alive& alive,
                  EvalResult* result) override;
  void End() override { rows_->End(); }
  int scratch_fd() const override { return rows_->scratch_fd(); }
  uint64_t work_bytes() const override { return rows_->work_bytes() + ranking_.work_bytes(); }

  Status UseDevice(DeviceSide& side, Workspace* memory) override {
    return rows_->UseDevice(side, memory);
  }
  void UseHost() override { rows_->UseHost(); }

 private:
  std::unique_ptr<ChunkEvaluator> rows_;
  const Model& model_;
  const ExactLayers& layers_;
  LinkRanking& ranking_;
  EvalShape shapes_[2];  // by EvalNodes
};

}  // namespace gnnd
