#pragma once

#include "core/base/status.h"
#include "core/executor/executor.h"
#include "core/executor/sample_work.h"
#include "core/ledger/segment.h"

namespace gnnd {

// The Sampler's whole life: claim, sample, publish, until no batch is left to be trained. Blocks
// the calling thread; one call per executor row. Ends when
//   - the job is complete or a command says so: LoopEnd; nothing is left in hand;
//   - the job was aborted: kAborted with the reason;
//   - the work failed: its Status. The batch stays claimed; the daemon reclaims it after it has
//     reaped the process (and decides whether to try again);
//   - the batch was taken away from it: kInternal (only a dead owner's batch may be).
// The caller registered `executor` (Segment::RegisterExecutor) with role kSampler.
Result<LoopEnd> RunSamplerLoop(Segment& segment, ExecutorId executor, SampleWork& work);

}  // namespace gnnd
