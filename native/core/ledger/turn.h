#pragma once

#include <cstdint>

#include "core/ledger/segment.h"

// The turn of a device that a Sampler and a standby Trainer share (docs/formats/segment.md).
//
// Invariants: the turn changes between batches only; its holder changes it, or the daemon for a
// holder that is dead and reaped; nobody hands over to an executor that is gone: presence and turn
// are one word, so a hand-over to a standby that has just been reaped fails. Each change releases
// and each look acquires the word, so the next holder sees the former holder's writes to the
// device's shared state.

namespace gnnd {

class Turn {
 public:
  Turn(Segment& segment, uint32_t device) : segment_(segment), device_(device) {}

  bool SamplerHolds() const { return (Load() & kTurnStandbyHolds) == 0; }
  bool StandbyHolds() const { return (Load() & kTurnStandbyHolds) != 0; }
  bool StandbyPresent() const { return (Load() & kTurnStandbyPresent) != 0; }
  bool SamplerGone() const { return (Load() & kTurnSamplerGone) != 0; }

  // The Sampler's loop begins (again). Without a standby it has the turn.
  void SamplerEnters();
  // The Sampler's loop ended, or no Sampler will come: the standby gets the turn.
  void SamplerLeaves();
  // True if the standby has the turn now; false if there is none, or it was not the Sampler's.
  bool SamplerHandsOver();

  void StandbyEnters();
  // The standby's loop ended, or it is dead and reaped: the Sampler has the turn, if it is there.
  void StandbyLeaves();
  // True if the Sampler has the turn now.
  bool StandbyYields();

 private:
  uint32_t Load() const;
  // Replaces the word by change(word) atomically; false if that changes nothing.
  template <typename Change>
  bool Update(Change change);

  Segment& segment_;
  uint32_t device_;
};

}  // namespace gnnd
