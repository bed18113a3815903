#if defined(__x86_64__)

#include <immintrin.h>

#include "train/dropout_simd.h"

namespace gnnd {
namespace {

struct Avx512 {
  using Reg = __m512i;
  static constexpr uint32_t kLanes = 8;

  static Reg Broadcast(uint64_t value) { return _mm512_set1_epi64(static_cast<int64_t>(value)); }
  static Reg LaneNumbers() { return _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7); }
  static Reg Add(Reg a, Reg b) { return _mm512_add_epi64(a, b); }
  // Zero-masked with all lanes on: the plain forms trip g++ 12's -Wmaybe-uninitialized.
  static Reg MulWide(Reg a, Reg b) { return _mm512_maskz_mul_epu32(0xFF, a, b); }
  static Reg High(Reg a) { return _mm512_maskz_srli_epi64(0xFF, a, 32); }
  static Reg Xor3(Reg a, Reg b, Reg c) { return _mm512_ternarylogic_epi64(a, b, c, 0x96); }
  static uint32_t NotBelow(Reg word, Reg threshold) {
    return _mm512_cmpge_epu64_mask(_mm512_and_si512(word, Broadcast(0xFFFFFFFFU)), threshold);
  }
  static uint32_t Spread(uint32_t bits) {
    return kSpreadNibble[bits & 15U] | kSpreadNibble[bits >> 4] << 16;
  }

  static void Apply(float* row, uint32_t columns, uint32_t bits, float scale, bool relu) {
    for (uint32_t at = 0; at < columns; at += 16) {
      const uint32_t left = columns - at;
      const auto inside = static_cast<__mmask16>(left < 16 ? (1U << left) - 1U : 0xFFFFU);
      const __m512 value = _mm512_maskz_loadu_ps(inside, row + at);
      auto keep = static_cast<__mmask16>(bits >> at);
      if (relu) keep = _mm512_mask_cmp_ps_mask(keep, value, _mm512_setzero_ps(), _CMP_NLE_UQ);
      const __m512 result = _mm512_maskz_mul_ps(keep, value, _mm512_set1_ps(scale));
      _mm512_mask_storeu_ps(row + at, inside, result);
    }
  }
};

}  // namespace

void DropoutAvx512(const DropoutRows<float>& op, uint32_t begin, uint32_t end) {
  DropoutSimd<Avx512>(op, begin, end);
}

}  // namespace gnnd

#endif
