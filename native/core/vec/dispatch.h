#pragma once

#include "core/base/check.h"
#include "core/base/cpu.h"

// Loops that were compiled for each instruction set (vec.h), and the choice between them. A header
// declares a struct of functions and the sets' tables of it:
//
//   struct ScaleLoops { void (*scale)(float* values, uint64_t count); };
//   GNND_DECLARE_LOOPS(ScaleLoops, kScaleLoops);
//
// Its *_loops.cc defines the table in namespace gnnd::GNND_SET, and callers use
// LoopsFor<ScaleLoops>(set) or BestLoops<ScaleLoops>().

#define GNND_DECLARE_LOOPS_OF(set, Loops, name) \
  namespace set {                               \
  extern const Loops name;                      \
  }
// Tables are in the order of the instruction sets that this processor family has.
#if defined(__x86_64__)
#define GNND_DECLARE_WIDER(Loops, name)    \
  GNND_DECLARE_LOOPS_OF(avx2, Loops, name) \
  GNND_DECLARE_LOOPS_OF(avx512, Loops, name)
#define GNND_WIDER(name) , &avx2::name, &avx512::name
#elif defined(__aarch64__)
#define GNND_DECLARE_WIDER(Loops, name) GNND_DECLARE_LOOPS_OF(neon, Loops, name)
#define GNND_WIDER(name) , &neon::name
#else
#define GNND_DECLARE_WIDER(Loops, name)
#define GNND_WIDER(name)
#endif
#define GNND_DECLARE_LOOPS(Loops, name)     \
  GNND_DECLARE_LOOPS_OF(plain, Loops, name) \
  GNND_DECLARE_WIDER(Loops, name)           \
  template <>                               \
  inline constexpr const Loops* kTablesOf<Loops>[] = {&plain::name GNND_WIDER(name)}

namespace gnnd {

template <typename Loops>
inline constexpr const Loops* kTablesOf[] = {nullptr};

// The table for `set`. REQUIRES: the machine has that set.
template <typename Loops>
const Loops& LoopsFor(InstructionSet set) {
  GNND_CHECK(IsAvailable(set));
  return *kTablesOf<Loops>[set == InstructionSet::kNeon ? 1 : static_cast<uint32_t>(set)];
}

// The table for the best set of this machine.
template <typename Loops>
const Loops& BestLoops() {
  static const Loops& best = LoopsFor<Loops>(DetectInstructionSet());
  return best;
}

}  // namespace gnnd
