#include "core/sample/picks.h"

#if defined(__x86_64__)

#include "core/sample/philox_avx2.h"

// Lane = row. A counter word lives in the low half of a 64-bit lane, where the widening multiply
// wants it; what gathers in the high half is never read. Eight rows are two vectors, those at even
// and those at odd places, so that their 32-bit results interleave by one shift and one blend.

namespace gnnd {
namespace {

using avx2::PhiloxLanes;
using avx2::Words;

constexpr uint32_t kLanes = 8;
constexpr int kOddLanes = 0xAA;

void PickLanes(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
               uint32_t fanout, uint32_t* picks) {
  const __m256i node = _mm256_load_si256(reinterpret_cast<const __m256i*>(nodes));
  const __m256i degree = _mm256_load_si256(reinterpret_cast<const __m256i*>(degrees));
  // Degrees are below 2^20, so the signed compare is right.
  const __m256i sampled = _mm256_cmpgt_epi32(degree, _mm256_set1_epi32(static_cast<int>(fanout)));
  const auto store = [picks](uint32_t j, __m256i value) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(picks + j * kGroupRows), value);
  };
  if (_mm256_testz_si256(sampled, sampled) != 0) {
    for (uint32_t j = 0; j < fanout; ++j) store(j, _mm256_set1_epi32(static_cast<int>(j)));
    return;
  }
  const __m256i odd_node = _mm256_srli_epi64(node, 32);
  const __m256i one = _mm256_set1_epi32(1);
  __m256i last = _mm256_sub_epi32(degree, _mm256_set1_epi32(static_cast<int>(fanout)));
  for (uint32_t block = 0; block * 4 < fanout; ++block) {
    const Words even = PhiloxLanes(stream.key, stream.counter, node, block);
    const Words odd = PhiloxLanes(stream.key, stream.counter, odd_node, block);
#pragma GCC unroll 4
    for (uint32_t w = 0; w < 4; ++w) {
      const uint32_t j = block * 4 + w;
      if (j == fanout) return;
      const __m256i bound = _mm256_add_epi32(last, one);
      const __m256i even_t = _mm256_srli_epi64(_mm256_mul_epu32(even.word[w], bound), 32);
      const __m256i odd_t = _mm256_mul_epu32(odd.word[w], _mm256_srli_epi64(bound, 32));
      const __m256i t = _mm256_blend_epi32(even_t, odd_t, kOddLanes);
      __m256i taken = _mm256_setzero_si256();
      for (uint32_t i = 0; i < j; ++i) {
        const auto* earlier = reinterpret_cast<const __m256i*>(picks + i * kGroupRows);
        taken = _mm256_or_si256(taken, _mm256_cmpeq_epi32(t, _mm256_load_si256(earlier)));
      }
      const __m256i pick = _mm256_blendv_epi8(t, last, taken);
      store(j, _mm256_blendv_epi8(_mm256_set1_epi32(static_cast<int>(j)), pick, sampled));
      last = bound;
    }
  }
}

void ReplaceLanes(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
                  uint32_t fanout, uint32_t* picks) {
  const __m256i node = _mm256_load_si256(reinterpret_cast<const __m256i*>(nodes));
  const __m256i bound = _mm256_load_si256(reinterpret_cast<const __m256i*>(degrees));
  const __m256i odd_node = _mm256_srli_epi64(node, 32);
  const __m256i odd_bound = _mm256_srli_epi64(bound, 32);
  for (uint32_t block = 0; block * 4 < fanout; ++block) {
    const Words even = PhiloxLanes(stream.key, stream.counter, node, block);
    const Words odd = PhiloxLanes(stream.key, stream.counter, odd_node, block);
#pragma GCC unroll 4
    for (uint32_t w = 0; w < 4; ++w) {
      const uint32_t j = block * 4 + w;
      if (j == fanout) return;
      const __m256i even_t = _mm256_srli_epi64(_mm256_mul_epu32(even.word[w], bound), 32);
      const __m256i odd_t = _mm256_mul_epu32(odd.word[w], odd_bound);
      _mm256_store_si256(reinterpret_cast<__m256i*>(picks + j * kGroupRows),
                         _mm256_blend_epi32(even_t, odd_t, kOddLanes));
    }
  }
}

void AliasLanes(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
                uint32_t draws, uint32_t* slots, uint32_t* words) {
  const __m256i node = _mm256_load_si256(reinterpret_cast<const __m256i*>(nodes));
  const __m256i bound = _mm256_load_si256(reinterpret_cast<const __m256i*>(degrees));
  const __m256i odd_node = _mm256_srli_epi64(node, 32);
  const __m256i odd_bound = _mm256_srli_epi64(bound, 32);
  for (uint32_t block = 0; block * 2 < draws; ++block) {
    const Words even = PhiloxLanes(stream.key, stream.counter, node, block);
    const Words odd = PhiloxLanes(stream.key, stream.counter, odd_node, block);
#pragma GCC unroll 2
    for (uint32_t w = 0; w < 4; w += 2) {
      const uint32_t j = block * 2 + w / 2;
      if (j == draws) return;
      const __m256i even_t = _mm256_srli_epi64(_mm256_mul_epu32(even.word[w], bound), 32);
      const __m256i odd_t = _mm256_mul_epu32(odd.word[w], odd_bound);
      const __m256i odd_word = _mm256_slli_epi64(odd.word[w + 1], 32);
      _mm256_store_si256(reinterpret_cast<__m256i*>(slots + j * kGroupRows),
                         _mm256_blend_epi32(even_t, odd_t, kOddLanes));
      _mm256_store_si256(reinterpret_cast<__m256i*>(words + j * kGroupRows),
                         _mm256_blend_epi32(even.word[w + 1], odd_word, kOddLanes));
    }
  }
}

uint32_t RepeatLanes(const uint32_t* picks, uint32_t j) {
  const auto* at = reinterpret_cast<const __m256i*>(picks);
  constexpr uint32_t kStride = kGroupRows / kLanes;
  const __m256i pick = _mm256_load_si256(at + j * kStride);
  __m256i repeated = _mm256_setzero_si256();
  for (uint32_t i = 0; i < j; ++i) {
    repeated =
        _mm256_or_si256(repeated, _mm256_cmpeq_epi32(pick, _mm256_load_si256(at + i * kStride)));
  }
  return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(repeated)));
}

}  // namespace

void DrawAliasAvx2(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
                   uint32_t draws, uint32_t* slots, uint32_t* words) {
  for (uint32_t row = 0; row < kGroupRows; row += kLanes) {
    AliasLanes(stream, nodes + row, degrees + row, draws, slots + row, words + row);
  }
}

void FindRepeatsAvx2(const uint32_t* picks, uint32_t draws, uint16_t* repeats) {
  for (uint32_t j = 0; j < draws; ++j) {
    repeats[j] =
        static_cast<uint16_t>(RepeatLanes(picks, j) | RepeatLanes(picks + kLanes, j) << kLanes);
  }
}

void PickGroupReplaceAvx2(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
                          uint32_t fanout, uint32_t* picks) {
  for (uint32_t row = 0; row < kGroupRows; row += kLanes) {
    ReplaceLanes(stream, nodes + row, degrees + row, fanout, picks + row);
  }
}

void PickGroupAvx2(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
                   uint32_t fanout, uint32_t* picks) {
  for (uint32_t row = 0; row < kGroupRows; row += kLanes) {
    PickLanes(stream, nodes + row, degrees + row, fanout, picks + row);
  }
}

}  // namespace gnnd

#endif  // defined(__x86_64__)
