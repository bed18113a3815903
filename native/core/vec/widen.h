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

// With the best variant that this machine has.
inline void Widen(const Half* from, uint64_t count, float* to) {
  BestLoops<WidenLoops>().widen(from, count, to);
}

}  // namespace gnnd
