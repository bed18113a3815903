#pragma once

#include <functional>
#include <memory>
#include <span>

#include "core/executor/prediction_files.h"
#include "train/tasks/row_targets.h"
#include "train/work/row_batches.h"
#include "train/work/work_parts.h"

namespace gnnd {

// Computes logits of rows, without dropout. Borrows all arguments.
class RowLogits {
 public:
  RowLogits(const RowInput& input, ComputeSide* side, RowBatches* batches)
      : input_(input), side_(*side), batches_(*batches) {}

  const RowInput& input() const { return input_; }
  uint64_t classes() const { return input_.options.model.out_dim; }

  // Gives `take` the rows of these runs and their logits, [rows, classes()], in the host's memory.
  using Take = std::function<Status(std::span<const uint32_t> rows, std::span<const float> logits)>;
  Status Of(const ParametersView& parameters, std::span<const RowRun> runs, const Take& take);
  // Gives `take` the logits of a chunk of the targets, and the place of the first of them.
  using TakeChunk = std::function<Status(uint64_t first, std::span<const float> logits)>;
  Status OfChunk(const ParametersView& parameters, uint64_t chunk, const RowTargets& targets,
                 const TakeChunk& take);

 private:
  const RowInput& input_;
  ComputeSide& side_;
  RowBatches& batches_;
};

// The following borrow `logits`. An evaluation counts the rows of two splits, and adds up the loss
// of validation rows.
std::unique_ptr<Evaluation> RowEvaluation(RowLogits* logits);
// An inference writes the predictions of its targets to files.
std::unique_ptr<Evaluation> RowInference(RowLogits* logits, RowTargets targets,
                                         std::shared_ptr<PredictionFiles> files);
// Finds the rows of nodes, wherever they are.
std::unique_ptr<NodeLogits> LogitsByRows(RowLogits* logits);

}  // namespace gnnd
