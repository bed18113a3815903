#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/status.h"
#include "core/device/use.h"
#include "core/draw/locality.h"

// A Sampler's computation without its scheduling: the Sampler loop (sampler_loop.h) decides which
// batch is next and where it goes; an implementation of this interface makes the record.

namespace gnnd {

// A batch to be sampled, and the place of its record.
struct SampleTask {
  uint32_t epoch = 0;  // decides random numbers (kTrialEpoch in a trial)
  uint32_t batch = 0;
  std::span<std::byte> slot{};  // may hold an earlier record
  uint32_t scale = kScaleOne;   // the epoch's scale of favoured neighbours
};

struct SampleReport {
  uint64_t payload_bytes = 0;  // bytes written, all sections
  uint64_t extent_bytes = 0;   // end of the last section touched
  uint64_t nodes = 0;          // input nodes
  uint64_t edges = 0;          // all hops
  uint64_t seeds = 0;
  uint64_t mark_ns = 0;  // part of the batch's time: M stage
  uint64_t copy_ns = 0;  // likewise: C stage, as far as nothing else hid it; the rest counts as S
  // A device's own time by events, if it has them, for S, M and C.
  uint64_t device_ns = 0;
  uint64_t device_mark_ns = 0;
  uint64_t device_copy_ns = 0;
  DeviceUse device{};
};

// All calls come from one thread. Batches are finished in the order in which they were started.
class SampleWork {
 public:
  virtual ~SampleWork() = default;

  // Number of batches that may be started before the first of them is finished: 1, or 2 if a batch
  // is computed while the previous record is copied.
  virtual uint32_t depth() const { return 1; }

  // Begins to make the record of a batch in its slot: a pure function of (epoch, batch, scale), so
  // that a batch whose Sampler died is made again, identically. May return at once; Finish waits
  // for the rest. After an error nothing of this batch is under way.
  virtual Status Start(const SampleTask& task) = 0;

  // Finishes the oldest started batch: when it returns, the record is complete and the slot is not
  // written any more.
  virtual Status Finish(const SampleTask& task, SampleReport* report) = 0;

  // Drops batches that were started and not finished: when it returns, no slot is written any more.
  // Nothing is started afterwards.
  virtual void Abandon() {}

  // Makes one batch from beginning to end, with none under way.
  Status Sample(const SampleTask& task, SampleReport* report) {
    GNND_TRY(Start(task));
    return Finish(task, report);
  }
};

}  // namespace gnnd
