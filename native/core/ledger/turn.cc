#include "core/ledger/turn.h"

#include <atomic>

namespace gnnd {

uint32_t Turn::Load() const {
  return segment_.device(device_).turn.load(std::memory_order_acquire);
}

template <typename Change>
bool Turn::Update(Change change) {
  std::atomic<uint32_t>& word = segment_.device(device_).turn;
  uint32_t old = word.load(std::memory_order_acquire);
  while (true) {
    const uint32_t next = change(old);
    if (next == old) return false;
    // Release: this holder's writes; acquire: those of the one before (see the header).
    if (segment_.trace().Exchange(LedgerTrace::Word::kTurn, device_, 0, word, old, next,
                                  std::memory_order_acquire)) {
      return true;
    }
  }
}

void Turn::SamplerEnters() {
  Update([](uint32_t turn) {
    turn &= ~kTurnSamplerGone;
    return (turn & kTurnStandbyPresent) != 0 ? turn : turn & ~kTurnStandbyHolds;
  });
  segment_.WakeTrainers();
}

void Turn::SamplerLeaves() {
  Update([](uint32_t turn) { return turn | kTurnSamplerGone | kTurnStandbyHolds; });
  segment_.WakeTrainers();
}

bool Turn::SamplerHandsOver() {
  const bool changed = Update([](uint32_t turn) {
    return (turn & kTurnStandbyPresent) != 0 ? turn | kTurnStandbyHolds : turn;
  });
  if (changed) segment_.WakeTrainers();
  return changed;
}

void Turn::StandbyEnters() {
  Update([](uint32_t turn) {
    turn |= kTurnStandbyPresent;
    return (turn & kTurnSamplerGone) != 0 ? turn | kTurnStandbyHolds : turn;
  });
  segment_.WakeSamplers();
}

void Turn::StandbyLeaves() {
  Update([](uint32_t turn) {
    turn &= ~kTurnStandbyPresent;
    return (turn & kTurnSamplerGone) != 0 ? turn : turn & ~kTurnStandbyHolds;
  });
  segment_.WakeSamplers();
}

bool Turn::StandbyYields() {
  const bool changed = Update([](uint32_t turn) {
    return (turn & kTurnSamplerGone) != 0 ? turn : turn & ~kTurnStandbyHolds;
  });
  if (changed) segment_.WakeSamplers();
  return changed;
}

}  // namespace gnnd
