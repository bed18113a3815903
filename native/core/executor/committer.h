#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/huge_array.h"
#include "core/base/status.h"
#include "core/executor/executor.h"
#include "core/executor/train_work.h"

// Commits of steps and evaluations: how the parameters move from version to version.
//
// Any Trainer applies the head group when it is complete. It works under the segment's robust mutex
// in memory that nobody reads (the next parameter buffer, the inactive optimizer state, the
// inactive sums), and then commits by one compare-and-swap of the commit word. A Trainer that dies
// before that has done nothing, one that dies after it has done everything; the next owner repeats
// the work or finds it done. The same holds for the first parameters and for the evaluation's
// report.

namespace gnnd {

class Committer {
 public:
  Committer(Executor& self, TrainWork& work);

  // Waits until version 0 is written, by this Trainer or another; kAborted when the job ends first.
  Status EnsureParameters();

  // Applies the head group if it is complete and unapplied. `timeout_ns` 0 only tries the lock.
  // True if a step was committed by us. kShmCorrupted when a ring entry is another batch's,
  // kNumericDivergence when a parameter would not be finite: such a step is never committed.
  Result<bool> TryApply(uint64_t timeout_ns);

  // The parameters on which a batch's gradient is computed: those of the due version, or predicted
  // from them. Valid until the next call. REQUIRES: the batch is due and taken by us.
  ParametersView ParametersFor(uint64_t batch);

  // Records a run whose chunks are all done; after validation nodes it keeps the parameters if they
  // are the best so far and decides whether the job ends with this epoch. False when the lock could
  // not be had in time: try again. True also when another Trainer was faster.
  Result<bool> CommitEvaluation(const EvalRun& run, const EvalShape& shape);

  // Locks within `timeout_ns`; false on timeout.
  bool Lock(uint64_t timeout_ns);
  void Unlock();

 private:
  Status ApplyHeadGroup(uint64_t version);
  // Writes the scale of the epoch after this one, whose sums are written.
  void WriteScale(uint64_t epoch);
  Status FoldSums(uint64_t version, EpochSums* sums, uint64_t* step_items);
  void WriteRun(const EvalRun& run, const EvalShape& shape);
  void WriteBest(uint64_t epoch, std::optional<uint64_t> before);
  // Writes whether the job ends with this epoch; `before` is the epoch evaluated before it, if any.
  void WriteStop(uint64_t epoch, std::optional<uint64_t> before);

  Executor& self_;
  Segment& segment_;
  TrainWork& work_;
  std::vector<GradientView> gradients_;  // gradients of the head group; kept to avoid allocating
  HugeArray<float> predicted_;           // empty if nothing is predicted
  std::optional<uint64_t> predicted_group_;  // the group of those parameters
};

}  // namespace gnnd
