#pragma once

#include "core/base/check.h"
#include "core/base/cpu.h"

// Loops that were compiled for each instruction set (vec.h), and the choice between them. A header
// declares a struct of functions and the sets' tables of it:
//
//   struct ScaleLoops { void (*scale)(float* values, uint64_t count); };
//   GNND_DECLARE_LOOPS(ScaleLoops, kScaleLoops);
//
// Its *_loops.cc defines the table in namespace gnnd::GNND_SET, and whoever runs loops takes
// GNND_LOOPS_OF(set, kScaleLoops).

#if defined(__x86_64__)
#define GNND_DECLARE_LOOPS(Loops, name) \
  namespace plain {                     \
  extern const Loops name;              \
  }                                     \
  namespace avx2 {                      \
  extern const Loops name;              \
  }                                     \
  namespace avx512 {                    \
  extern const Loops name;              \
  }                                     \
  static_assert(true)
#define GNND_LOOPS_OF(set, name) (::gnnd::LoopsOf(set, plain::name, avx2::name, avx512::name))
#elif defined(__aarch64__)
#define GNND_DECLARE_LOOPS(Loops, name) \
  namespace plain {                     \
  extern const Loops name;              \
  }                                     \
  namespace neon {                      \
  extern const Loops name;              \
  }                                     \
  static_assert(true)
#define GNND_LOOPS_OF(set, name) (::gnnd::LoopsOf(set, plain::name, neon::name))
#else
#define GNND_DECLARE_LOOPS(Loops, name) \
  namespace plain {                     \
  extern const Loops name;              \
  }                                     \
  static_assert(true)
#define GNND_LOOPS_OF(set, name) (::gnnd::LoopsOf(set, plain::name))
#endif

namespace gnnd {

// The table for `set`, which the machine must have; tables in the order of the sets it knows.
template <typename Loops, typename... Wider>
const Loops& LoopsOf(InstructionSet set, const Loops& plain, const Wider&... wider) {
  GNND_CHECK(IsAvailable(set));
  const Loops* const tables[] = {&plain, &wider...};
#if defined(__aarch64__)
  return *tables[set == InstructionSet::kNeon ? 1 : 0];
#else
  return *tables[static_cast<uint32_t>(set)];
#endif
}

}  // namespace gnnd
