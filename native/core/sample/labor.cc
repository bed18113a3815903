#include "core/sample/labor.h"

#include "core/base/check.h"

namespace gnnd {
namespace {

uint32_t LaborFilterScalar(const LaborKeys& keys, uint32_t threshold, const uint32_t* ids,
                           uint32_t size, uint32_t* kept) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < size; ++i) {
    kept[count] = ids[i];
    count += LaborNumber(keys, ids[i]) < threshold ? 1 : 0;
  }
  return count;
}

}  // namespace

LaborFilterFn LaborFilterFor(InstructionSet set) {
#if defined(__x86_64__)
  GNND_CHECK(set <= DetectInstructionSet());
  if (set == InstructionSet::kAvx512) return LaborFilterAvx512;
  if (set == InstructionSet::kAvx2) return LaborFilterAvx2;
#else
  GNND_CHECK(set == InstructionSet::kScalar);
#endif
  return LaborFilterScalar;
}

}  // namespace gnnd
