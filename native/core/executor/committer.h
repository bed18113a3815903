#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/huge_array.h"
#include "core/base/status.h"
#include "core/executor/executor.h"
#include "core/executor/train_work.h"

// Commits of steps and evaluations: how the parameters move from version to version (design §4).
//
// Any Trainer applies the head group when it is complete. All of it happens under the segment's
// robust mutex into memory that nobody reads (the next parameter buffer, the inactive optimizer
// state, the inactive sums), and then counts by one compare-and-swap of the commit word. Whoever
// dies before that has done nothing, whoever dies after it has done everything; the next owner does
// it anew or finds it done. The same holds for the first parameters and for the evaluation's
// report.

namespace gnnd {

class Committer {
 public:
  Committer(Executor& self, TrainWork& work);

  // Version 0 is written, by us or by somebody else; kAborted when the job ends first.
  Status EnsureParameters();

  // Applies the head group if it is complete and unapplied. `timeout_ns` 0 only tries the lock.
  // True if a step was committed by us. kShmCorrupted when a ring entry is another batch's,
  // kNumericDivergence when a parameter would not be finite: such a step is never committed.
  Result<bool> TryApply(uint64_t timeout_ns);

  // The parameters a batch's gradient is computed on: of the version that is due, or predicted from
  // them. Valid until the next call. REQUIRES: the batch is due and taken by us.
  ParametersView ParametersFor(uint64_t batch);

  // Records a run whose chunks are all done; after validation nodes it keeps the parameters if they
  // are the best so far and decides whether the job ends with this epoch. False when the lock was
  // not to be had in time: try again. True also when somebody else was faster.
  Result<bool> CommitEvaluation(const EvalRun& run, const EvalShape& shape);

  // Locks within `timeout_ns`; false if not.
  bool Lock(uint64_t timeout_ns);
  void Unlock();

 private:
  Status ApplyHeadGroup(uint64_t version);
  // The scale of the epoch after this one, whose sums are written.
  void WriteScale(uint64_t epoch);
  Status FoldSums(uint64_t version, EpochSums* sums, uint64_t* step_items);
  void WriteRun(const EvalRun& run, const EvalShape& shape);
  void WriteBest(uint64_t epoch, std::optional<uint64_t> before);
  // Whether the job ends with this epoch; `before` is the epoch evaluated before it, if any.
  void WriteStop(uint64_t epoch, std::optional<uint64_t> before);

  Executor& self_;
  Segment& segment_;
  TrainWork& work_;
  std::vector<GradientView> gradients_;      // of the head group; kept to avoid allocating
  HugeArray<float> predicted_;               // empty where nothing is predicted
  std::optional<uint64_t> predicted_group_;  // whose parameters those are
};

}  // namespace gnnd
