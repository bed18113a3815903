#pragma once

#include <cstdint>

#include "core/base/half.h"
#include "core/vec/dispatch.h"

// float16 to float32, many at once: exact, so every instruction set gives the same bits.

namespace gnnd {

struct WidenLoops {
  // to[i] = from[i] for `count` elements, which must not overlap.
  void (*widen)(const Half* from, uint64_t count, float* to);
};
GNND_DECLARE_LOOPS(WidenLoops, kWidenLoops);

// The function for an instruction set, which the machine must have.
inline auto WidenFor(InstructionSet set) { return GNND_LOOPS_OF(set, kWidenLoops).widen; }

// With the best variant that this machine has.
inline void Widen(const Half* from, uint64_t count, float* to) {
  static const auto widen = WidenFor(DetectInstructionSet());
  widen(from, count, to);
}

}  // namespace gnnd
