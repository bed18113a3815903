#pragma once

#include "core/base/status.h"
#include "core/executor/executor.h"
#include "core/executor/train_work.h"
#include "core/ledger/segment.h"

namespace gnnd {

// A Trainer's whole life: take, extract, wait until due, compute, hand in, apply; evaluate when a
// run is open. Ends when every batch and the last evaluation are committed, and otherwise as
// RunSamplerLoop. With `prefetch` the next batch is extracted on a second thread while the present
// one is computed, which decides no bit. A standby Trainer (role kStandby) does the same whenever
// it has its device's turn (docs/formats/segment.md). kShmCorrupted when a record fails OpenRecord
// or is not the batch that the ledger says.
Result<LoopEnd> RunTrainerLoop(Segment& segment, ExecutorId executor, TrainWork& work,
                               bool prefetch);

}  // namespace gnnd
