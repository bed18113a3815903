#include "core/sample/labor.h"

#if defined(__x86_64__)

#include <immintrin.h>

namespace gnnd {
namespace {

constexpr uint32_t kLanes = 8;

__m256i XorShift(__m256i x, int bits) { return _mm256_xor_si256(x, _mm256_srli_epi32(x, bits)); }

__m256i Broadcast(uint32_t value) { return _mm256_set1_epi32(static_cast<int>(value)); }

// a < b as unsigned numbers, by lane: signed compares of values shifted by 2^31.
__m256i Below(__m256i a, __m256i b) {
  const __m256i sign = Broadcast(0x80000000);
  return _mm256_cmpgt_epi32(_mm256_xor_si256(b, sign), _mm256_xor_si256(a, sign));
}

__m256i Mix(__m256i ids, __m256i k0, __m256i k1) {
  __m256i x = _mm256_xor_si256(ids, k0);
  x = _mm256_mullo_epi32(XorShift(x, 16), Broadcast(0x7FEB352D));
  x = _mm256_add_epi32(XorShift(x, 15), k1);
  x = _mm256_mullo_epi32(x, Broadcast(0x846CA68B));
  x = _mm256_mullo_epi32(XorShift(x, 16), Broadcast(0x9E3779B1));
  return XorShift(x, 15);
}

// Whether some nodes have their next number already.
template <bool kMixed>
__m256i Numbers(const LaborKeys& keys, __m256i ids) {
  const __m256i k0 = Broadcast(keys.now.k0);
  const __m256i k1 = Broadcast(keys.now.k1);
  if (!kMixed) return Mix(ids, k0, k1);
  const __m256i at =
      _mm256_mullo_epi32(_mm256_xor_si256(ids, Broadcast(keys.switch_key)), Broadcast(0x9E3779B1));
  const __m256i switched = Below(at, Broadcast(keys.switch_below));
  return Mix(ids, _mm256_blendv_epi8(k0, Broadcast(keys.next.k0), switched),
             _mm256_blendv_epi8(k1, Broadcast(keys.next.k1), switched));
}

// The lanes of `mask` moved to the front.
__m256i Compress(__m256i values, uint32_t mask) {
  constexpr uint64_t kLanesInOrder = 0x0706050403020100;
  const uint64_t bytes = _pdep_u64(mask, 0x0101010101010101) * 0xFF;
  const auto lanes = static_cast<int64_t>(_pext_u64(kLanesInOrder, bytes));
  return _mm256_permutevar8x32_epi32(values, _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(lanes)));
}

template <bool kMixed>
uint32_t Filter(LaborKeys keys, uint32_t threshold, const uint32_t* ids, uint32_t size,
                uint32_t* kept) {
  const __m256i bound = Broadcast(threshold);
  uint32_t count = 0;
  uint32_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ids + i));
    const __m256i below = Below(Numbers<kMixed>(keys, values), bound);
    const auto mask = static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(below)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(kept + count), Compress(values, mask));
    count += static_cast<uint32_t>(_mm_popcnt_u32(mask));
  }
  for (; i < size; ++i) {
    kept[count] = ids[i];
    count += LaborNumber(keys, ids[i]) < threshold ? 1 : 0;
  }
  return count;
}

}  // namespace

uint32_t LaborFilterAvx2(const LaborKeys& keys, uint32_t threshold, const uint32_t* ids,
                         uint32_t size, uint32_t* kept) {
  if (keys.switch_below == 0) return Filter<false>(keys, threshold, ids, size, kept);
  return Filter<true>(keys, threshold, ids, size, kept);
}

}  // namespace gnnd

#endif  // defined(__x86_64__)
