#include "core/ledger/queue_account.h"

#include <algorithm>

#include "core/base/failpoint.h"

namespace gnnd {

uint64_t QueueAccount::Bytes(const Segment& segment) {
  const JobShape& shape = segment.shape();
  const uint64_t version = segment.Version();
  const uint64_t head = shape.CommittedBatches(version);
  const uint64_t end =
      std::min(segment.queue().claim_frontier.value.load(std::memory_order_acquire),
               segment.ClaimEnd(version));
  if (end <= head) return segment.PrefixBytes();
  if (counted_.empty()) counted_.resize(std::min(shape.num_slots, shape.batches_per_epoch));
  for (; head_ < std::min(head, end_); ++head_) {
    settled_ -= Counted(head_);
    Counted(head_) = 0;
  }
  head_ = std::max(head_, head);
  for (end_ = std::max(end_, head_); end_ < end; ++end_) open_.push_back(end_);
  uint64_t reserved = 0;
  std::erase_if(open_,
                [&](uint64_t batch) { return batch < head_ || Settle(segment, batch, &reserved); });
  return segment.PrefixBytes() + settled_ + reserved;
}

bool QueueAccount::Settle(const Segment& segment, uint64_t batch, uint64_t* reserved) {
  GNND_VISIT();
  const JobShape& shape = segment.shape();
  const uint64_t word = segment.ledger(shape.IndexOfBatch(batch)).load(std::memory_order_acquire);
  const BatchState state = LedgerWord::InEpoch(word, shape.EpochOfBatch(batch)).state;
  if (state == BatchState::kPending) return false;  // reclaimed, or its claim is under way
  const uint64_t bytes =
      segment.slot_entry(shape.SlotOf(batch)).bytes.load(std::memory_order_relaxed);
  if (state == BatchState::kClaimed) {
    *reserved += bytes;
    return false;
  }
  Counted(batch) = bytes;
  settled_ += bytes;
  return true;
}

}  // namespace gnnd
