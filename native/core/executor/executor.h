#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/ledger/batches.h"
#include "core/ledger/evaluation.h"
#include "core/ledger/executor_log.h"
#include "core/ledger/segment.h"
#include "core/ledger/turn.h"

// What the Sampler's and the Trainer's loop have in common: identity, commands, bounded waits.

namespace gnnd {

// How a loop ended that did not fail.
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

  // The row is ours and alive: from here on the daemon sees this process. kInternal otherwise.
  Status Enter();
  // Notes how the loop ended and hands its result on.
  Result<LoopEnd> Leave(Result<LoopEnd> end);

  // The stronger of the job's command and this executor's.
  Command command() const;

  // Sleeps until there are such news (news.h) at `event` that came after `seen`, at most
  // kMaxWaitNs. Consecutive waits for the same thing count as one blocked operation, which EndWait
  // closes.
  void Wait(EventWord& event, uint32_t seen, WaitSide side, uint32_t news);
  // The same while the job is paused, which is no wait on the queue.
  void WaitPaused(EventWord& event, uint32_t seen, uint32_t news);
  void EndWait();

  // Shows in the row what is being done, to which batch (counted over the job).
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

// Whether a standby Trainer may take a batch as far as policy and the profit rule say (design §8),
// with so many batches READY. Called by the standby under the lock, by its Sampler as a forecast.
bool StandbyMayTake(const Segment& segment, uint64_t depth);
// So many READY batches need be counted to know what StandbyMayTake says: it does not change its
// mind at larger depths.
uint64_t DecisiveDepth(const Segment& segment);

// Whether it may take chunks of an evaluation: unless standby Trainers are off, since whoever waits
// for the evaluation's end gains by it.
bool StandbyMayEvaluate(const Segment& segment);

}  // namespace gnnd
