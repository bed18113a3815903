#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/ledger/evaluation.h"

// Metrics that follow from how an evaluation orders its nodes, not from what it predicts of each:
// area under the ROC curve and average precision, exact, with ties as scikit-learn has them. An
// evaluation that is *ranked* leaves a score of every node and column in the segment, and has one
// phase more, in which each column is sorted: its chunks are columns.

namespace gnnd {

// The memory that columns are sorted in, kept from one to the next.
class Ranker {
 public:
  // Of the entries at, at + stride, ... of both; `count` of them. -0 equals 0; NaN among them: NaN.
  Ranking Rank(const float* scores, const Outcome* outcomes, uint64_t count, uint64_t stride);

 private:
  std::vector<uint64_t> keys_;  // of a score, ascending as scores do, and the outcome's bit
  std::vector<uint64_t> other_;
};

// The last phase of a ranked run: the columns that are `chunk` modulo the run's chunks. Done again,
// it leaves the same. kAborted when `alive` says no; it is asked before each column.
Status RankColumns(Segment& segment, const EvalShape& shape, uint32_t chunk,
                   const std::function<bool()>& alive);

// Means over the columns that have both a positive and a negative; NaN where none has.
Ranking MeanOf(std::span<const Ranking> columns);

}  // namespace gnnd
