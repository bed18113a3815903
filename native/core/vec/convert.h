#pragma once

#include <cstdint>

#include "core/base/bfloat16.h"
#include "core/base/half.h"
#include "core/vec/dispatch.h"

// Numbers from one type to another, many at once. Widening is exact and narrowing rounds as
// ToBfloat16 does, so every instruction set gives the same bits. The arrays must not overlap.

namespace gnnd {

struct ConvertLoops {
  void (*widen_half)(const Half* from, uint64_t count, float* to);
  void (*widen_bfloat16)(const Bfloat16* from, uint64_t count, float* to);
  void (*narrow)(const float* from, uint64_t count, Bfloat16* to);
  void (*narrow_half)(const Half* from, uint64_t count, Bfloat16* to);
};
GNND_DECLARE_LOOPS(ConvertLoops, kConvertLoops);

// With the best variants that this machine has.
inline void Convert(const Half* from, uint64_t count, float* to) {
  BestLoops<ConvertLoops>().widen_half(from, count, to);
}
inline void Convert(const Bfloat16* from, uint64_t count, float* to) {
  BestLoops<ConvertLoops>().widen_bfloat16(from, count, to);
}
inline void Convert(const float* from, uint64_t count, Bfloat16* to) {
  BestLoops<ConvertLoops>().narrow(from, count, to);
}
inline void Convert(const Half* from, uint64_t count, Bfloat16* to) {
  BestLoops<ConvertLoops>().narrow_half(from, count, to);
}

}  // namespace gnnd
