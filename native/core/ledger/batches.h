#pragma once

#include <cstdint>
#include <optional>

#include "core/base/status.h"
#include "core/ledger/queue_account.h"
#include "core/ledger/segment.h"

// A batch's way through the ledger, as one executor walks it (design §2).
//
//  PENDING -Claim-> CLAIMED -Publish-> READY -Take-> TAKEN -HandIn-> TRAINED -commit-> COMMITTED
//
// Batches of rows need no Sampler: they are READY once their epoch is open and their slot free.
//
// One object per executor, used by one thread. Every transition is one compare-and-swap of the
// ledger word; it releases what was written under the old state and acquires what the former owner
// wrote, so a record, a gradient or a slot is never seen half made. Batches are counted over the
// job.

namespace gnnd {

class Batches {
 public:
  // REQUIRES: `id` was registered in this segment.
  Batches(Segment& segment, ExecutorId id);

  // ---- Sampler ------------------------------------------------------------------------------

  // Claims the lowest PENDING batch whose slot is free, whose epoch is open and for which the byte
  // budget has room (the head group needs none), and reserves the largest record seen for it.
  std::optional<uint64_t> Claim();
  // Whether Claim would find one.
  bool Claimable();
  // Whether `batch` may be sampled now as far as bytes go: always, if it is in the head group.
  bool RoomFor(uint64_t batch);
  // The record of a claimed batch is complete: so many bytes, in sections of which the last one
  // ends at `extent_bytes`. kInternal when the batch is not this executor's.
  Status Publish(uint64_t batch, uint64_t payload_bytes, uint64_t extent_bytes);
  // Of a record without gaps.
  Status Publish(uint64_t batch, uint64_t bytes) { return Publish(batch, bytes, bytes); }

  // ---- Trainer ------------------------------------------------------------------------------

  enum class Which { kAny, kDueOnly };

  // Takes the lowest READY batch, if there is one.
  std::optional<uint64_t> Take(Which which);
  // Puts a taken batch back. REQUIRES: this executor reads its slot no more.
  Status GiveBack(uint64_t batch);
  // The gradient and HandIn of a taken batch lie in its ring entry.
  Status MarkTrained(uint64_t batch);
  // Whether its gradient may be computed now: the version it is computed on is committed, and so is
  // the evaluation of the epoch before, which did not stop the job.
  bool Due(uint64_t batch) const;
  bool ReadyBelow(uint64_t batch) const;
  // A PENDING batch below this one that a Sampler could claim.
  bool ClaimableBelow(uint64_t batch);
  bool DueBatchReady() const;
  // READY batches, counted up to `most`. Looks at these and at those that executors hold or wait to
  // be committed before them.
  uint64_t Depth(uint64_t most) const;
  // Whether all batches of the group that is to be committed next are TRAINED.
  bool HeadGroupTrained(uint64_t version);
  // Nobody samples or trains, and nothing that is READY is due: a drain has come to its end.
  bool Drained();

  // Wakes those whom the step to `version` concerns; everybody where an epoch ends.
  void AnnounceStep(uint64_t version);

 private:
  LedgerWord EntryOf(uint64_t batch) const;
  Status Leave(uint64_t batch, BatchState from, BatchState to, const char* what);
  // The lowest PENDING batch that may be claimed now, whatever the budget says.
  std::optional<uint64_t> FirstPending();
  // Batches from `head` up to here may be anything but PENDING-never-claimed.
  uint64_t Frontier() const;
  void Reserve(uint64_t batch);
  // Notes when the first batch of its epoch was begun.
  void BeginEpoch(uint64_t batch);
  // Wakes a Trainer for a READY batch.
  void Announce(uint64_t batch);
  std::optional<uint64_t> FirstReady() const;

  Segment& segment_;
  const JobShape& shape_;
  uint32_t owner_;
  uint64_t cursor_ = 0;         // batches below are not PENDING, as far as this executor saw
  uint64_t reclaims_seen_ = 0;  // a reclaim moves the cursor back
  uint64_t trained_to_ = 0;     // batches of the head group below are TRAINED, which is for good
  QueueAccount account_;
};

// Bytes of all records that are claimed and not committed, from ledger and slot directory, looking
// at each of them; executors keep a QueueAccount. What slots have registered counts always, and
// records only beyond it. No record counts once the job has stopped early: what was sampled beyond
// is waste.
uint64_t QueueBytes(const Segment& segment);

// Where an entry of a ledger stands, and which epoch (of a chunk: which run) it is about.
struct EntryPlace {
  LedgerTrace::Word kind;  // kBatch or kChunk
  uint64_t index;
  uint64_t epoch;
};

// Moves an entry that `owner` has in `from` on to `to`, which nobody owns; kInternal when it is not
// his.
Status LeaveEntry(const Segment& segment, const EntryPlace& place, uint32_t owner, BatchState from,
                  BatchState to, const char* what);

// The owner that stands in ledger words for an executor.
uint32_t OwnerOf(const Segment& segment, ExecutorId id);

}  // namespace gnnd
