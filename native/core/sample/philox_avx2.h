#pragma once

#include <immintrin.h>

#include <cstdint>

#include "core/base/philox.h"

// Philox, a counter a lane. A counter word lives in the low half of a 64-bit lane, where the
// widening multiply wants it; what gathers in the high half is never read. For files compiled for
// AVX2 only.

namespace gnnd::avx2 {

struct Words {
  __m256i word[4];
};

inline __attribute__((always_inline)) Words PhiloxLanes(PhiloxKey key, PhiloxCounter counter,
                                                        __m256i nodes, __m256i blocks) {
  const __m256i mul0 = _mm256_set1_epi64x(0xD2511F53);
  const __m256i mul1 = _mm256_set1_epi64x(0xCD9E8D57);
  __m256i c0 = nodes;
  __m256i c1 = _mm256_or_si256(_mm256_set1_epi64x(static_cast<int64_t>(counter.word[1])), blocks);
  __m256i c2 = _mm256_set1_epi64x(static_cast<int64_t>(counter.word[2]));
  __m256i c3 = _mm256_set1_epi64x(static_cast<int64_t>(counter.word[3]));
  for (int round = 0; round < 10; ++round) {
    const __m256i k0 = _mm256_set1_epi64x(static_cast<int64_t>(key.lo));
    const __m256i k1 = _mm256_set1_epi64x(static_cast<int64_t>(key.hi));
    const __m256i p0 = _mm256_mul_epu32(c0, mul0);
    const __m256i p1 = _mm256_mul_epu32(c2, mul1);
    c0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c1), k0);
    c2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c3), k1);
    c1 = p1;
    c3 = p0;
    key.lo += 0x9E3779B9U;
    key.hi += 0xBB67AE85U;
  }
  return Words{{c0, c1, c2, c3}};
}

// The same block of every lane.
inline __attribute__((always_inline)) Words PhiloxLanes(PhiloxKey key, PhiloxCounter counter,
                                                        __m256i nodes, uint32_t block) {
  return PhiloxLanes(key, counter, nodes, _mm256_set1_epi64x(static_cast<int64_t>(block)));
}

}  // namespace gnnd::avx2
