#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "core/base/status.h"
#include "core/executor/train_work.h"
#include "core/ledger/segment.h"

// Extracts a Trainer's batches, one at a time: on a thread of its own, so that the next batch is
// extracted while the present one is computed, or on the caller's.
//
// Owned and called by one thread, the Trainer's loop. It neither takes nor gives back batches, and
// writes nothing into the segment: it only reads a taken batch's slot, and the executor's row keeps
// its one writer.

namespace gnnd {

// A batch that has been extracted: everything needed outside its record was read.
struct Extracted {
  Sample sample;
  uint32_t buffer = 0;  // number of TrainWork's buffer
  ExtractReport report;
  uint64_t busy_ns = 0;  // E
};

class Extractor {
 public:
  // With `ahead` extraction has a thread of its own, unless the work keeps a history; else Finish
  // does the work.
  Extractor(const Segment& segment, TrainWork& work, bool ahead)
      : segment_(segment), work_(work), ahead_(ahead && !work.keeps_history()) {}
  ~Extractor();
  Extractor(const Extractor&) = delete;
  Extractor& operator=(const Extractor&) = delete;

  bool ahead() const { return ahead_; }

  // Begins with a batch (counted over the job) that this executor has taken; the one that was
  // finished last stays usable. kShmAllocationFailed when no thread can be started.
  // REQUIRES: nothing is under way.
  Status Start(uint64_t batch);
  bool started() const { return started_; }

  // Waits for what was started. kShmCorrupted when the record fails OpenRecord or is not the batch
  // that the ledger says, kInternal when it holds rows, or what TrainWork::Extract returns.
  // REQUIRES: something was started.
  Result<Extracted> Finish();
  // Gives up what was started, if anything. Its slot is read no more when this returns.
  void Discard();

 private:
  void Run();
  void Wait();
  Status Extract();
  BatchPoint PointOf(uint64_t batch) const;
  Result<Sample> SampleOf(uint64_t batch) const;
  // The sample of a batch without a record: its key and number of rows. `work_` knows the random
  // seed.
  Sample RowsOf(uint64_t batch) const;

  const Segment& segment_;
  TrainWork& work_;
  const bool ahead_;
  bool started_ = false;

  uint64_t batch_ = 0;  // the started batch, whose result is `out_`
  Extracted out_;
  Status status_;

  std::mutex mutex_;  // guards the next two, which pass the three members above between the threads
  bool under_way_ = false;
  bool ending_ = false;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace gnnd
