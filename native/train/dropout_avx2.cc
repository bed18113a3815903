#if defined(__x86_64__)

#include <immintrin.h>

#include "train/dropout_simd.h"

namespace gnnd {
namespace {

struct Avx2 {
  using Reg = __m256i;
  static constexpr uint32_t kLanes = 4;

  static Reg Broadcast(uint64_t value) { return _mm256_set1_epi64x(static_cast<int64_t>(value)); }
  static Reg LaneNumbers() { return _mm256_setr_epi64x(0, 1, 2, 3); }
  static Reg Add(Reg a, Reg b) { return _mm256_add_epi64(a, b); }
  static Reg MulWide(Reg a, Reg b) { return _mm256_mul_epu32(a, b); }
  static Reg High(Reg a) { return _mm256_srli_epi64(a, 32); }
  static Reg Xor3(Reg a, Reg b, Reg c) { return _mm256_xor_si256(_mm256_xor_si256(a, b), c); }
  // Both sides are below 2^33, so the signed comparison is right.
  static uint32_t NotBelow(Reg word, Reg threshold) {
    const Reg low = _mm256_and_si256(word, Broadcast(0xFFFFFFFFU));
    const Reg below = _mm256_cmpgt_epi64(threshold, low);
    return static_cast<uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(below))) ^ 15U;
  }
  static uint32_t Spread(uint32_t bits) { return kSpreadNibble[bits]; }

  static void Apply(float* row, uint32_t columns, uint32_t bits, float scale, bool relu) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i lane_bit = _mm256_sllv_epi32(_mm256_set1_epi32(1), lane);
    for (uint32_t at = 0; at < columns; at += 8) {
      const __m256i inside =
          _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(columns - at)), lane);
      const __m256 value = _mm256_maskload_ps(row + at, inside);
      const __m256i mine =
          _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits >> at)), lane_bit);
      __m256 keep = _mm256_castsi256_ps(_mm256_cmpeq_epi32(mine, lane_bit));
      if (relu) {
        keep = _mm256_and_ps(keep, _mm256_cmp_ps(value, _mm256_setzero_ps(), _CMP_NLE_UQ));
      }
      const __m256 result = _mm256_and_ps(keep, _mm256_mul_ps(value, _mm256_set1_ps(scale)));
      _mm256_maskstore_ps(row + at, inside, result);
    }
  }
};

}  // namespace

void DropoutAvx2(const DropoutRows<float>& op, uint32_t begin, uint32_t end) {
  DropoutSimd<Avx2>(op, begin, end);
}

}  // namespace gnnd

#endif
