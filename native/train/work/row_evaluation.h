#pragma once

#include <functional>
#include <memory>
#include <span>

#include "core/executor/prediction_files.h"
#include "train/evaluate/pair_phase.h"
#include "train/tasks/eval_targets.h"
#include "train/tasks/row_targets.h"
#include "train/work/row_batches.h"
#include "train/work/work_parts.h"

namespace gnnd {

// Computes what layers give for rows, without dropout. Borrows all arguments.
class RowLogits {
 public:
  RowLogits(const RowInput& input, ComputeSide* side, RowBatches* batches)
      : input_(input), side_(*side), batches_(*batches) {}

  const RowInput& input() const { return input_; }
  // The layer that gives logits.
  uint32_t last() const { return input_.options.model.num_layers - 1; }

  // Gives `take` the rows of these runs as each of `layers`, ascending, gives them, in the host's
  // memory.
  Status Of(const ParametersView& parameters, std::span<const RowRun> runs,
            std::span<const uint32_t> layers, const RowsConsumer& take);
  // Gives `take` those of a chunk of the targets, and the place of the first of them.
  using TakeChunk = std::function<Status(uint64_t first, const LayerRows& rows)>;
  Status OfChunk(const ParametersView& parameters, uint64_t chunk, const RowTargets& targets,
                 std::span<const uint32_t> layers, const TakeChunk& take);

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
// First the rows of nodes, then what is done with pairs of them, on the host. Borrows `pairs`, too.
std::unique_ptr<Evaluation> RowPairs(RowLogits* logits, PairPhase* pairs);
// Finds the rows of nodes, wherever they are.
std::unique_ptr<NodeLogits> LogitsByRows(RowLogits* logits);

}  // namespace gnnd
