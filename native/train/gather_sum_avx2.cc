#if defined(__x86_64__)

#include <immintrin.h>

#include <bit>
#include <cstring>

#include "train/gather_sum_simd.h"

namespace gnnd {
namespace {

struct Avx2 {
  using Reg = __m256;
  using Mask = __m256i;
  static constexpr uint32_t kLanes = 8;
  static constexpr uint32_t kMaxRegs = 8;  // of 16; the rest for terms, weight and mask

  static Reg Zero() { return _mm256_setzero_ps(); }
  static Reg Broadcast(float value) { return _mm256_set1_ps(value); }
  static Reg Load(const float* from) { return _mm256_loadu_ps(from); }
  static Reg LoadMasked(const float* from, Mask mask) { return _mm256_maskload_ps(from, mask); }
  static Reg Load(const Half* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static Reg LoadMasked(const Half* from, Mask mask) {
    // There is no masked load of 16-bit lanes, and what lies behind the last row may not be read.
    const auto lanes = static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(mask)));
    __m128i halves = _mm_setzero_si128();
    std::memcpy(&halves, from, static_cast<uint32_t>(std::popcount(lanes)) * sizeof(Half));
    return _mm256_cvtph_ps(halves);
  }
  static void Store(float* to, Reg reg) { _mm256_storeu_ps(to, reg); }
  static void StoreMasked(float* to, Mask mask, Reg reg) { _mm256_maskstore_ps(to, mask, reg); }
  static Reg Mul(Reg a, Reg b) { return _mm256_mul_ps(a, b); }
  static Reg Add(Reg a, Reg b) { return _mm256_add_ps(a, b); }
  static Mask FirstLanes(uint32_t count) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lane);
  }
};

}  // namespace

void GatherSumAvx2(const GatherSum<float>& op, uint32_t begin, uint32_t end) {
  GatherSumSimd<Avx2>(op, begin, end);
}

void GatherSumAvx2(const GatherSum<float, Half>& op, uint32_t begin, uint32_t end) {
  GatherSumSimd<Avx2>(op, begin, end);
}

}  // namespace gnnd

#endif
