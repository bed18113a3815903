#pragma once

#include <cstdint>

#include "core/base/futex.h"

// The kinds of news on a job's event words. A batch's way wakes those whom it concerns: a published
// batch one Trainer that has none, a step those who hold what is due now, and as many Samplers as
// it frees slots. Everything rare (reclaims, commands, ends of epochs, evaluations, turns, aborts)
// wakes everybody.
//
// Whoever takes a wake-up that was meant for one of several and then does not use it (it ends, or
// loses its turn) passes it on; a process that is killed with one is reclaimed, which wakes all.

namespace gnnd {

inline constexpr uint32_t kNewsRare = 1;
inline constexpr uint32_t kNewsBatch = 2;         // one to take, or one to claim
inline constexpr uint32_t kNewsLend = 4;          // a Sampler may lend its device to the standby
inline constexpr uint32_t kNewsDue = 0xFFFFFFF8;  // all of NewsOfGroup

// That a group's batches may be computed. Groups share bits, which wakes some in vain.
constexpr uint32_t NewsOfGroup(uint64_t group) { return 8U << group % 29; }

}  // namespace gnnd
