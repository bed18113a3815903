#pragma once

#include <cstdint>

#include "core/ledger/segment.h"

// Whose a device is, where a Sampler and a standby Trainer share it (design §2, "turn word").
//
// Invariants: the turn changes between batches only; its holder changes it, or the daemon for a
// holder that is dead and reaped; nobody hands over to one that is gone: presence and turn are one
// word, so a hand-over to a standby that has just been reaped fails.
// Each change releases and each look acquires the word, so what the former holder did to the
// device's shared state is visible to the next one.

namespace gnnd {

class Turn {
 public:
  Turn(Segment& segment, uint32_t device) : segment_(segment), device_(device) {}

  bool SamplerHolds() const { return (Load() & kTurnStandbyHolds) == 0; }
  bool StandbyHolds() const { return (Load() & kTurnStandbyHolds) != 0; }
  bool StandbyPresent() const { return (Load() & kTurnStandbyPresent) != 0; }
  bool SamplerGone() const { return (Load() & kTurnSamplerGone) != 0; }

  // The Sampler's loop begins: it is there (again). Without a standby the device is its own.
  void SamplerEnters();
  // Its loop ended, or none will come: the device is the standby's.
  void SamplerLeaves();
  // True if the device is the standby's now; false if there is none, or it was not the Sampler's.
  bool SamplerHandsOver();

  void StandbyEnters();
  // Its loop ended, or it is dead and reaped: the device is the Sampler's, unless that is gone.
  void StandbyLeaves();
  // True if the device is the Sampler's now.
  bool StandbyYields();

 private:
  uint32_t Load() const;
  // Replaces the word by change(word) atomically; false (nothing changed) when that returns it as
  // is.
  template <typename Change>
  bool Update(Change change);

  Segment& segment_;
  uint32_t device_;
};

}  // namespace gnnd
