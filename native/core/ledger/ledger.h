#pragma once

#include <cstdint>

// A ledger word: the state of one batch (or of the evaluation), in one atomic 64-bit integer.
//
//   bits 61..63  state
//   bits 52..60  attempt: how often the entry was reclaimed in this epoch, saturating
//   bits 28..51  epoch tag: the epoch (counted in the segment) the rest of the word is about
//   bits  0..27  owner: the incarnation of the executor that holds it, 0 = nobody
//
// A word whose tag is an earlier epoch's reads as PENDING, so that an epoch starts without storing
// to every entry. COMMITTED is not stored for batches: it follows from the version (shape.h). A
// zeroed word is PENDING in epoch 0.

namespace gnnd {

enum class BatchState : uint32_t {
  kPending = 0,    // to be sampled or, for the evaluation, to be done
  kClaimed = 1,    // a Sampler makes the record
  kReady = 2,      // the record is complete and immutable
  kTaken = 3,      // a Trainer works on it, or on the evaluation
  kTrained = 4,    // the gradient lies in the ring; nobody owns it
  kCommitted = 5,  // its group is part of the model, or the evaluation's report is recorded
};
inline constexpr uint32_t kNumBatchStates = 6;

inline constexpr uint32_t kOwnerBits = 28;
inline constexpr uint32_t kEpochBits = 24;
inline constexpr uint32_t kAttemptBits = 9;
inline constexpr uint32_t kMaxIncarnation = (1U << kOwnerBits) - 1;
inline constexpr uint32_t kMaxSegmentEpochs = 1U << kEpochBits;
inline constexpr uint32_t kMaxAttempt = (1U << kAttemptBits) - 1;

struct LedgerWord {
  BatchState state = BatchState::kPending;
  uint32_t attempt = 0;
  uint32_t epoch = 0;
  uint32_t owner = 0;

  static constexpr LedgerWord Unpack(uint64_t word) {
    return LedgerWord{static_cast<BatchState>(word >> 61),
                      static_cast<uint32_t>(word >> 52) & kMaxAttempt,
                      static_cast<uint32_t>(word >> kOwnerBits) & (kMaxSegmentEpochs - 1),
                      static_cast<uint32_t>(word) & kMaxIncarnation};
  }

  constexpr uint64_t Pack() const {
    return static_cast<uint64_t>(state) << 61 | static_cast<uint64_t>(attempt) << 52 |
           static_cast<uint64_t>(epoch) << kOwnerBits | owner;
  }

  // The word as seen from an epoch: an earlier tag means untouched; a later one means that this
  // epoch is over, which a reader with an old version may meet.
  static constexpr LedgerWord InEpoch(uint64_t word, uint64_t epoch) {
    const LedgerWord entry = Unpack(word);
    if (entry.epoch == epoch) return entry;
    const bool over = entry.epoch > epoch;
    return LedgerWord{over ? BatchState::kCommitted : BatchState::kPending, 0,
                      static_cast<uint32_t>(epoch), 0};
  }

  // A batch's word as seen from an epoch; batches that no Sampler makes are READY from the start.
  static constexpr LedgerWord OfBatch(uint64_t word, uint64_t epoch, bool born_ready) {
    LedgerWord entry = InEpoch(word, epoch);
    if (born_ready && entry.state == BatchState::kPending) entry.state = BatchState::kReady;
    return entry;
  }

  // The same entry in another state, with another owner.
  constexpr LedgerWord With(BatchState new_state, uint32_t new_owner) const {
    return LedgerWord{new_state, attempt, epoch, new_owner};
  }

  // A dead owner's entry as the daemon frees it, with one attempt more.
  constexpr LedgerWord Reclaimed(BatchState new_state) const {
    return LedgerWord{new_state, attempt < kMaxAttempt ? attempt + 1 : attempt, epoch, 0};
  }
};
static_assert(3 + kAttemptBits + kEpochBits + kOwnerBits == 64);

// The turn word of a device that a Sampler and a standby Trainer share: who has the turn, and who
// is there to get it. One atomic integer, so that nobody hands over to one that has just gone.
//   bit 0  the standby Trainer holds the device (else the Sampler)
//   bit 1  a standby Trainer is in its loop
//   bit 2  no Sampler will come (back) on this device
inline constexpr uint32_t kTurnStandbyHolds = 1;
inline constexpr uint32_t kTurnStandbyPresent = 2;
inline constexpr uint32_t kTurnSamplerGone = 4;

}  // namespace gnnd
