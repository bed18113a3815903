#pragma once

#include <cstdint>
#include <vector>

#include "core/ledger/segment.h"

namespace gnnd {

// One executor's account of the bytes in the queue: payloads of batches that are sampled and not
// committed, reservations of those that are claimed. It follows from ledger and slot directory like
// QueueBytes, so that no death can falsify it, but incrementally: a batch is read when it enters
// the window of claims, until its record is complete, and when it leaves. So a call reads the
// batches claimed since the last call and those being made, never all slots.
class QueueAccount {
 public:
  uint64_t Bytes(const Segment& segment);

 private:
  // Adds a batch whose record is complete, so that its payload is final. False if it is not.
  bool Settle(const Segment& segment, uint64_t batch, uint64_t* reserved);
  uint64_t& Counted(uint64_t batch) { return counted_[batch % counted_.size()]; }

  uint64_t head_ = 0;  // the known window of claims is [head_, end_)
  uint64_t end_ = 0;
  uint64_t settled_ = 0;           // bytes of the window's complete records
  std::vector<uint64_t> counted_;  // the part of settled_ of each record
  std::vector<uint64_t> open_;     // batches without a complete record
};

}  // namespace gnnd
