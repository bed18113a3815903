#if defined(__x86_64__)

#include <immintrin.h>

#include "train/gather_sum_simd.h"

namespace gnnd {
namespace {

struct Avx512 {
  using Reg = __m512;
  using Mask = __mmask16;
  static constexpr uint32_t kLanes = 16;
  static constexpr uint32_t kMaxRegs = 16;  // of 32; twice that with the terms' temporaries

  static Reg Zero() { return _mm512_setzero_ps(); }
  static Reg Broadcast(float value) { return _mm512_set1_ps(value); }
  static Reg Load(const float* from) { return _mm512_loadu_ps(from); }
  static Reg LoadMasked(const float* from, Mask mask) { return _mm512_maskz_loadu_ps(mask, from); }
  static Reg Load(const Half* from) {
    // Masked because GCC 12 warns of its own unmasked form.
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return _mm512_maskz_cvtph_ps(0xFFFF, halves);
  }
  static Reg LoadMasked(const Half* from, Mask mask) {
    return _mm512_maskz_cvtph_ps(mask, _mm256_maskz_loadu_epi16(mask, from));
  }
  static void Store(float* to, Reg reg) { _mm512_storeu_ps(to, reg); }
  static void StoreMasked(float* to, Mask mask, Reg reg) { _mm512_mask_storeu_ps(to, mask, reg); }
  static Reg Mul(Reg a, Reg b) { return _mm512_mul_ps(a, b); }
  static Reg Add(Reg a, Reg b) { return _mm512_add_ps(a, b); }
  static Mask FirstLanes(uint32_t count) { return static_cast<Mask>((1U << count) - 1U); }
};

}  // namespace

void GatherSumAvx512(const GatherSum<float>& op, uint32_t begin, uint32_t end) {
  GatherSumSimd<Avx512>(op, begin, end);
}

void GatherSumAvx512(const GatherSum<float, Half>& op, uint32_t begin, uint32_t end) {
  GatherSumSimd<Avx512>(op, begin, end);
}

}  // namespace gnnd

#endif
