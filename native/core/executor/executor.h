#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/ledger/batches.h"
#include "core/ledger/evaluation.h"
#include "core/ledger/executor_log.h"
#include "core/ledger/segment.h"
#include "core/ledger/turn.h"

// The common part of the Sampler's and the Trainer's loop: identity, commands, bounded waits.

namespace gnnd {

// How a loop ended without an error.
enum class LoopEnd {
  kComplete,  // the job needs nothing more of this executor
  kStopped,   // a command word said stop, or drain and there was nothing left to drain
};

class Executor {
 public:
  Executor(Segment& segment, ExecutorId id);

  Segment& segment() { return segment_; }
  const JobShape& shape() const { return segment_.shape(); }
  ExecutorLog& log() { return log_; }
  Batches& batches() { return batches_; }
  Evaluations& evaluations() { return evaluations_; }
  Turn& turn() { return turn_; }
  ExecutorId id() const { return id_; }

  // Marks the row as alive: from here on the daemon sees this process. kInternal if it is not ours.
  Status Enter();
  // Records how the loop ended and returns that.
  Result<LoopEnd> Leave(Result<LoopEnd> end);

  // The stronger of the job's command and this executor's.
  Command command() const;

  // Sleeps until such news (news.h) come at `event` after `seen`, at most kMaxWaitNs. Consecutive
  // waits for the same thing count as one blocked operation, which EndWait closes.
  void Wait(EventWord& event, uint32_t seen, WaitSide side, uint32_t news);
  // Wait while the job is paused, which does not count as a wait for the queue.
  void WaitPaused(EventWord& event, uint32_t seen, uint32_t news);
  void EndWait();

  // Shows the present stage and batch (numbered over the job) in the row.
  void Progress(Stage stage, uint64_t batch);

 private:
  Segment& segment_;
  ExecutorId id_;
  ExecutorLog log_;
  Batches batches_;
  Evaluations evaluations_;
  Turn turn_;
  uint64_t blocked_since_ns_ = 0;  // 0 = not blocked
  WaitSide blocked_side_ = WaitSide::kEnqueue;
};

// Whether policy and the profit rule let a standby Trainer take a batch with `depth` READY batches.
// Called by the standby under the lock, and by its Sampler as a forecast.
bool StandbyMayTake(const Segment& segment, uint64_t depth);
// Number of READY batches that must be counted to decide StandbyMayTake, which is the same for all
// larger depths.
uint64_t DecisiveDepth(const Segment& segment);

// Whether a standby may take chunks of an evaluation: unless standby Trainers are off, because
// everybody waits for the evaluation's end.
bool StandbyMayEvaluate(const Segment& segment);

}  // namespace gnnd
