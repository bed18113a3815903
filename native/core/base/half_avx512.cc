#if defined(__x86_64__)

#include <immintrin.h>

#include "core/base/half.h"

namespace gnnd {

// The masked form throughout: GCC 12 warns of its own unmasked one.
void WidenAvx512(const Half* from, uint64_t count, float* to) {
  constexpr uint64_t kLanes = 16;
  uint64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    _mm512_storeu_ps(to + i, _mm512_maskz_cvtph_ps(0xFFFF, halves));
  }
  if (i == count) return;
  const auto left = static_cast<__mmask16>((1U << (count - i)) - 1U);
  const __m256i last = _mm256_maskz_loadu_epi16(left, from + i);
  _mm512_mask_storeu_ps(to + i, left, _mm512_maskz_cvtph_ps(left, last));
}

}  // namespace gnnd

#endif
