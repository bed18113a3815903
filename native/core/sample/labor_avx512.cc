#include "core/sample/labor.h"

#if defined(__x86_64__)

#include <immintrin.h>

// GCC 12 takes the deliberately undefined operand inside its own intrinsics for a mistake of ours.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace gnnd {
namespace {

constexpr uint32_t kLanes = 16;

__m512i XorShift(__m512i x, unsigned bits) {
  return _mm512_xor_si512(x, _mm512_srli_epi32(x, bits));
}

__m512i Broadcast(uint32_t value) { return _mm512_set1_epi32(static_cast<int>(value)); }

__m512i Mix(__m512i ids, __m512i k0, __m512i k1) {
  __m512i x = _mm512_xor_si512(ids, k0);
  x = _mm512_mullo_epi32(XorShift(x, 16), Broadcast(0x7FEB352D));
  x = _mm512_add_epi32(XorShift(x, 15), k1);
  x = _mm512_mullo_epi32(x, Broadcast(0x846CA68B));
  x = _mm512_mullo_epi32(XorShift(x, 16), Broadcast(0x9E3779B1));
  return XorShift(x, 15);
}

// Whether some nodes have their next number already.
template <bool kMixed>
__m512i Numbers(const LaborKeys& keys, __m512i ids) {
  const __m512i k0 = Broadcast(keys.now.k0);
  const __m512i k1 = Broadcast(keys.now.k1);
  if (!kMixed) return Mix(ids, k0, k1);
  const __m512i at =
      _mm512_mullo_epi32(_mm512_xor_si512(ids, Broadcast(keys.switch_key)), Broadcast(0x9E3779B1));
  const __mmask16 switched = _mm512_cmplt_epu32_mask(at, Broadcast(keys.switch_below));
  return Mix(ids, _mm512_mask_mov_epi32(k0, switched, Broadcast(keys.next.k0)),
             _mm512_mask_mov_epi32(k1, switched, Broadcast(keys.next.k1)));
}

template <bool kMixed>
uint32_t Filter(LaborKeys keys, uint32_t threshold, const uint32_t* ids, uint32_t size,
                uint32_t* kept) {
  const __m512i bound = Broadcast(threshold);
  uint32_t count = 0;
  for (uint32_t i = 0; i < size; i += kLanes) {
    const uint32_t rest = size - i;
    const auto valid = static_cast<__mmask16>(rest < kLanes ? (1U << rest) - 1 : 0xFFFF);
    const __m512i values = _mm512_maskz_loadu_epi32(valid, ids + i);
    const __mmask16 mask =
        _mm512_mask_cmplt_epu32_mask(valid, Numbers<kMixed>(keys, values), bound);
    _mm512_storeu_si512(kept + count, _mm512_maskz_compress_epi32(mask, values));
    count += static_cast<uint32_t>(_mm_popcnt_u32(mask));
  }
  return count;
}

}  // namespace

uint32_t LaborFilterAvx512(const LaborKeys& keys, uint32_t threshold, const uint32_t* ids,
                           uint32_t size, uint32_t* kept) {
  if (keys.switch_below == 0) return Filter<false>(keys, threshold, ids, size, kept);
  return Filter<true>(keys, threshold, ids, size, kept);
}

}  // namespace gnnd

#endif  // defined(__x86_64__)
