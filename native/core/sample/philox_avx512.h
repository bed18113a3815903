#pragma once

#include <immintrin.h>

#include <cstdint>

#include "core/base/philox.h"

// As philox_avx2.h, for files compiled for AVX-512 only.

namespace gnnd::avx512 {

struct Words {
  __m512i word[4];
};

inline __attribute__((always_inline)) Words PhiloxLanes(PhiloxKey key, PhiloxCounter counter,
                                                        __m512i nodes, __m512i blocks) {
  constexpr int kXor3 = 0x96;
  const __m512i mul0 = _mm512_set1_epi64(0xD2511F53);
  const __m512i mul1 = _mm512_set1_epi64(0xCD9E8D57);
  __m512i c0 = nodes;
  __m512i c1 = _mm512_or_si512(_mm512_set1_epi64(static_cast<int64_t>(counter.word[1])), blocks);
  __m512i c2 = _mm512_set1_epi64(static_cast<int64_t>(counter.word[2]));
  __m512i c3 = _mm512_set1_epi64(static_cast<int64_t>(counter.word[3]));
  for (int round = 0; round < 10; ++round) {
    const __m512i k0 = _mm512_set1_epi64(static_cast<int64_t>(key.lo));
    const __m512i k1 = _mm512_set1_epi64(static_cast<int64_t>(key.hi));
    const __m512i p0 = _mm512_mul_epu32(c0, mul0);
    const __m512i p1 = _mm512_mul_epu32(c2, mul1);
    c0 = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p1, 32), c1, k0, kXor3);
    c2 = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p0, 32), c3, k1, kXor3);
    c1 = p1;
    c3 = p0;
    key.lo += 0x9E3779B9U;
    key.hi += 0xBB67AE85U;
  }
  return Words{{c0, c1, c2, c3}};
}

// The same block of every lane.
inline __attribute__((always_inline)) Words PhiloxLanes(PhiloxKey key, PhiloxCounter counter,
                                                        __m512i nodes, uint32_t block) {
  return PhiloxLanes(key, counter, nodes, _mm512_set1_epi64(static_cast<int64_t>(block)));
}

}  // namespace gnnd::avx512
