#pragma once

#include <cstdint>
#include <vector>

#include "core/ledger/segment.h"

namespace gnnd {

// One executor's knowledge of how many bytes the queue holds: payloads of what is sampled and not
// committed, reservations of what is claimed. Derived from ledger and slot directory like
// QueueBytes, so that no death can make it wrong, but kept: each batch is looked at when it enters
// the window of claims, until its record is complete, and when it leaves. What a call looks at is
// the batches claimed since the last one and those that are being made; never the slots.
class QueueAccount {
 public:
  uint64_t Bytes(const Segment& segment);

 private:
  // Adds a batch whose record is complete: its payload stays what it is. False if it is not.
  bool Settle(const Segment& segment, uint64_t batch, uint64_t* reserved);
  uint64_t& Counted(uint64_t batch) { return counted_[batch % counted_.size()]; }

  uint64_t head_ = 0;  // the window of claims, as far as it was seen, is [head_, end_)
  uint64_t end_ = 0;
  uint64_t settled_ = 0;           // bytes of the window's complete records
  std::vector<uint64_t> counted_;  // what is in settled_ for each of them
  std::vector<uint64_t> open_;     // the others
};

}  // namespace gnnd
