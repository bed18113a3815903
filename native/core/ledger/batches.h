#pragma once

#include <cstdint>
#include <optional>

#include "core/base/status.h"
#include "core/ledger/queue_account.h"
#include "core/ledger/segment.h"

// A batch's way through the ledger, as one executor walks it.
//
//  PENDING -Claim-> CLAIMED -Publish-> READY -Take-> TAKEN -HandIn-> TRAINED -commit-> COMMITTED
//
// Batches of rows need no Sampler: they are READY once their epoch is open and their slot free.
//
// One object per executor, used by one thread. Every transition is one compare-and-swap of the
// ledger word; it releases this executor's writes under the old state and acquires those of the
// former owner, so a record, a gradient or a slot is never seen half made. Batches are numbered
// over the job.

namespace gnnd {

class Batches {
 public:
  // REQUIRES: `id` was registered in this segment.
  Batches(Segment& segment, ExecutorId id);

  // ---- Sampler ------------------------------------------------------------------------------

  // Claims the lowest PENDING batch whose slot is free, whose epoch is open and for which the byte
  // budget has room (the head group needs none), and reserves the largest record seen for it.
  std::optional<uint64_t> Claim();
  // Whether Claim would find a batch.
  bool Claimable();
  // Whether the byte budget allows `batch` to be sampled now: always, if it is in the head group.
  bool RoomFor(uint64_t batch);
  // Publishes the complete record of a claimed batch: `payload_bytes`, in sections of which the
  // last one ends at `extent_bytes`. kInternal when the batch is not this executor's.
  Status Publish(uint64_t batch, uint64_t payload_bytes, uint64_t extent_bytes);
  // Publishes a record without gaps.
  Status Publish(uint64_t batch, uint64_t bytes) { return Publish(batch, bytes, bytes); }

  // ---- Trainer ------------------------------------------------------------------------------

  enum class Which { kAny, kDueOnly };

  // Takes the lowest READY batch, if any.
  std::optional<uint64_t> Take(Which which);
  // Puts a taken batch back. REQUIRES: this executor does not read its slot any more.
  Status GiveBack(uint64_t batch);
  // Hands in a taken batch, whose gradient and HandIn lie in its ring entry.
  Status MarkTrained(uint64_t batch);
  // Whether the batch's gradient may be computed now: the version that it needs is committed, and
  // so is the evaluation of the epoch before, which did not stop the job.
  bool Due(uint64_t batch) const;
  bool ReadyBelow(uint64_t batch) const;
  // Whether there is a PENDING batch below this one that a Sampler could claim.
  bool ClaimableBelow(uint64_t batch);
  bool DueBatchReady() const;
  // Counts READY batches up to `most`. Reads their words and those of batches before them that
  // executors hold or that wait to be committed.
  uint64_t Depth(uint64_t most) const;
  // Whether all batches of the next group to be committed are TRAINED.
  bool HeadGroupTrained(uint64_t version);
  // Whether nobody samples or trains, and no READY batch is due: a drain has come to its end.
  bool Drained();

  // Wakes the executors that the step to `version` concerns; everybody if an epoch ends.
  void AnnounceStep(uint64_t version);

 private:
  LedgerWord EntryOf(uint64_t batch) const;
  Status Leave(uint64_t batch, BatchState from, BatchState to, const char* what);
  // The lowest PENDING batch that may be claimed now, whatever the budget.
  std::optional<uint64_t> FirstPending();
  // No batch from here on was ever claimed.
  uint64_t Frontier() const;
  void Reserve(uint64_t batch);
  // Records the time when the first batch of its epoch was begun.
  void BeginEpoch(uint64_t batch);
  // Wakes a Trainer for a READY batch.
  void Announce(uint64_t batch);
  std::optional<uint64_t> FirstReady() const;

  Segment& segment_;
  const JobShape& shape_;
  uint32_t owner_;
  uint64_t cursor_ = 0;         // batches below are not PENDING, as far as this executor knows
  uint64_t reclaims_seen_ = 0;  // a reclaim moves the cursor back
  uint64_t trained_to_ = 0;     // batches of the head group below are TRAINED, which is final
  QueueAccount account_;
};

// Bytes of all records that are claimed and not committed, computed from all of ledger and slot
// directory; executors keep a QueueAccount instead. Registered bytes of slots always count, and
// records only beyond them. No record counts once the job has stopped early.
uint64_t QueueBytes(const Segment& segment);

// The place of a ledger's entry, and its epoch (for a chunk: its run).
struct EntryPlace {
  LedgerTrace::Word kind;  // kBatch or kChunk
  uint64_t index;
  uint64_t epoch;
};

// Moves an entry that `owner` holds in `from` on to `to`, without an owner; kInternal when it is
// not that owner's.
Status LeaveEntry(const Segment& segment, const EntryPlace& place, uint32_t owner, BatchState from,
                  BatchState to, const char* what);

// The number by which ledger words name an executor.
uint32_t OwnerOf(const Segment& segment, ExecutorId id);

}  // namespace gnnd
