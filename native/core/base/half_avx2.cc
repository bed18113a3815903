#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#include "core/base/half.h"

namespace gnnd {

void WidenAvx2(const Half* from, uint64_t count, float* to) {
  constexpr uint64_t kLanes = 8;
  uint64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(halves));
  }
  if (i == count) return;
  // The header's ToFloat must not be compiled here: its copy for these instructions could be the
  // one that the linker keeps for all.
  __m128i last = _mm_setzero_si128();
  alignas(32) float widened[kLanes];
  std::memcpy(&last, from + i, (count - i) * sizeof(Half));
  _mm256_store_ps(widened, _mm256_cvtph_ps(last));
  std::memcpy(to + i, widened, (count - i) * sizeof(float));
}

}  // namespace gnnd

#endif
