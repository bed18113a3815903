#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/status.h"

// What a Sampler computes, apart from when: the Sampler loop (sampler_loop.h) decides which batch
// is next and where it goes; an implementation of this interface makes the record.

namespace gnnd {

struct SampleReport {
  uint64_t payload_bytes = 0;  // bytes written, all sections
  uint64_t extent_bytes = 0;   // end of the last section touched
  uint64_t nodes = 0;          // input nodes
  uint64_t edges = 0;          // all hops
  uint64_t seeds = 0;
  uint64_t mark_ns = 0;  // of the call's time: M stage; the rest counts as S
};

class SampleWork {
 public:
  virtual ~SampleWork() = default;

  // Writes the record of a batch into `slot`: a pure function of (epoch, batch), so that a batch
  // whose Sampler died is made again, identically. `epoch` is the one that decides random numbers
  // (kTrialEpoch in a trial). The slot holds whatever an earlier record left. Called from one
  // thread.
  virtual Status Sample(uint32_t epoch, uint32_t batch, std::span<std::byte> slot,
                        SampleReport* report) = 0;
};

}  // namespace gnnd
