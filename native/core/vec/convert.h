#pragma once

#include <cstdint>

#include "core/base/bfloat16.h"
#include "core/base/half.h"
#include "core/vec/dispatch.h"

// Converts many numbers from one type to another. Widening is exact and narrowing rounds as
// ToBfloat16 does, so every instruction set gives the same bits. The arrays must not overlap.

namespace gnnd {

struct ConvertLoops {
  void (*widen_half)(const Half* from, uint64_t count, float* to);
  void (*widen_bfloat16)(const Bfloat16* from, uint64_t count, float* to);
  void (*narrow)(const float* from, uint64_t count, Bfloat16* to);
  void (*narrow_half)(const Half* from, uint64_t count, Bfloat16* to);
};
GNND_DECLARE_LOOPS(ConvertLoops, kConvertLoops);

// Converts with the best variant for this machine.
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
