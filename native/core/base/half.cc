#include "core/base/half.h"

namespace gnnd {
namespace {

void WidenPortable(const Half* from, uint64_t count, float* to) {
  for (uint64_t i = 0; i < count; ++i) to[i] = ToFloat(from[i]);
}

}  // namespace

WidenFn WidenFor([[maybe_unused]] InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx512) return WidenAvx512;
  if (set == InstructionSet::kAvx2) return WidenAvx2;
#endif
  return WidenPortable;
}

void Widen(const Half* from, uint64_t count, float* to) {
  static const WidenFn variant = WidenFor(DetectInstructionSet());
  variant(from, count, to);
}

}  // namespace gnnd
