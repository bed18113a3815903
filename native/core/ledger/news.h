#pragma once

#include <cstdint>

#include "core/base/futex.h"

// The kinds of news on a job's event words. The normal way of a batch wakes only the executors
// concerned: a published batch wakes one Trainer without a batch, a step wakes those that hold a
// batch which is now due and as many Samplers as it frees slots. Everything rare (reclaims,
// commands, ends of epochs, evaluations, turns, aborts) wakes everybody.
//
// An executor that takes a wake-up meant for one of several and does not use it (it ends, or loses
// its turn) passes it on; a process killed with one is reclaimed, which wakes all.

namespace gnnd {

inline constexpr uint32_t kNewsRare = 1;
inline constexpr uint32_t kNewsBatch = 2;         // a batch to take, or one to claim
inline constexpr uint32_t kNewsLend = 4;          // a Sampler may lend its device to the standby
inline constexpr uint32_t kNewsDue = 0xFFFFFFF8;  // all of NewsOfGroup

// News that a group's batches may be computed. Groups share bits, so some wake in vain.
constexpr uint32_t NewsOfGroup(uint64_t group) { return 8U << group % 29; }

}  // namespace gnnd
