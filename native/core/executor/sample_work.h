#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/status.h"
#include "core/device/use.h"
#include "core/draw/locality.h"

// What a Sampler computes, apart from when: the Sampler loop (sampler_loop.h) decides which batch
// is next and where it goes; an implementation of this interface makes the record.

namespace gnnd {

// A batch that is to be sampled, and where its record goes.
struct SampleTask {
  uint32_t epoch = 0;  // the one that decides random numbers (kTrialEpoch in a trial)
  uint32_t batch = 0;
  std::span<std::byte> slot{};  // holds whatever an earlier record left
  uint32_t scale = kScaleOne;   // the epoch's, of favoured neighbours
};

struct SampleReport {
  uint64_t payload_bytes = 0;  // bytes written, all sections
  uint64_t extent_bytes = 0;   // end of the last section touched
  uint64_t nodes = 0;          // input nodes
  uint64_t edges = 0;          // all hops
  uint64_t seeds = 0;
  uint64_t mark_ns = 0;  // of the batch's time: M stage
  uint64_t copy_ns = 0;  // likewise: C stage, what of it nothing else hid; the rest counts as S
  // A device's own time, where it has events to tell it by: of S, M and C.
  uint64_t device_ns = 0;
  uint64_t device_mark_ns = 0;
  uint64_t device_copy_ns = 0;
  DeviceUse device{};
};

// Calls come from one thread. Batches are finished in the order in which they were started.
class SampleWork {
 public:
  virtual ~SampleWork() = default;

  // How many batches may be started before the first of them is finished: 1, or 2 where a batch is
  // computed while the record of the one before is copied.
  virtual uint32_t depth() const { return 1; }

  // Begins to make the record of a batch in its slot: a pure function of (epoch, batch, scale), so
  // that a batch whose Sampler died is made again, identically. May return at once; what is not
  // ready then Finish waits for. After an error nothing of this batch is under way.
  virtual Status Start(const SampleTask& task) = 0;

  // The batch that was started first of those not finished: when it returns the record is complete
  // and the slot is written no more.
  virtual Status Finish(const SampleTask& task, SampleReport* report) = 0;

  // Drops what was started and not finished: when it returns no slot is written any more. Nothing
  // is started afterwards.
  virtual void Abandon() {}

  // One batch from beginning to end, with none under way.
  Status Sample(const SampleTask& task, SampleReport* report) {
    GNND_TRY(Start(task));
    return Finish(task, report);
  }
};

}  // namespace gnnd
