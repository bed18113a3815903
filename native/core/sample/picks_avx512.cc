#include "core/sample/picks.h"

#if defined(__x86_64__)

#include "core/sample/philox_avx512.h"

// GCC 12 takes the deliberately undefined operand inside its own intrinsics for a mistake of ours.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

// As picks_avx2.cc, with all sixteen rows of a group in one vector of 32-bit results.

namespace gnnd {
namespace {

using avx512::PhiloxLanes;
using avx512::Words;

constexpr __mmask16 kOddLanes = 0xAAAA;

}  // namespace

void PickGroupAvx512(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
                     uint32_t fanout, uint32_t* picks) {
  const __m512i node = _mm512_load_si512(nodes);
  const __m512i degree = _mm512_load_si512(degrees);
  const __m512i all = _mm512_set1_epi32(static_cast<int>(fanout));
  const __mmask16 sampled = _mm512_cmpgt_epu32_mask(degree, all);
  const auto store = [picks](uint32_t j, __m512i value) {
    _mm512_store_si512(picks + j * kGroupRows, value);
  };
  if (sampled == 0) {
    for (uint32_t j = 0; j < fanout; ++j) store(j, _mm512_set1_epi32(static_cast<int>(j)));
    return;
  }
  const __m512i odd_node = _mm512_srli_epi64(node, 32);
  const __m512i one = _mm512_set1_epi32(1);
  __m512i last = _mm512_sub_epi32(degree, all);
  for (uint32_t block = 0; block * 4 < fanout; ++block) {
    const Words even = PhiloxLanes(stream.key, stream.counter, node, block);
    const Words odd = PhiloxLanes(stream.key, stream.counter, odd_node, block);
#pragma GCC unroll 4
    for (uint32_t w = 0; w < 4; ++w) {
      const uint32_t j = block * 4 + w;
      if (j == fanout) return;
      const __m512i bound = _mm512_add_epi32(last, one);
      const __m512i even_t = _mm512_srli_epi64(_mm512_mul_epu32(even.word[w], bound), 32);
      const __m512i odd_t = _mm512_mul_epu32(odd.word[w], _mm512_srli_epi64(bound, 32));
      const __m512i t = _mm512_mask_blend_epi32(kOddLanes, even_t, odd_t);
      __mmask16 taken = 0;
      for (uint32_t i = 0; i < j; ++i) {
        const __m512i earlier = _mm512_load_si512(picks + i * kGroupRows);
        taken = static_cast<__mmask16>(taken | _mm512_cmpeq_epi32_mask(t, earlier));
      }
      const __m512i pick = _mm512_mask_mov_epi32(t, taken, last);
      store(j, _mm512_mask_mov_epi32(_mm512_set1_epi32(static_cast<int>(j)), sampled, pick));
      last = bound;
    }
  }
}

void PickGroupReplaceAvx512(const DrawStream& stream, const uint32_t* nodes,
                            const uint32_t* degrees, uint32_t fanout, uint32_t* picks) {
  const __m512i node = _mm512_load_si512(nodes);
  const __m512i bound = _mm512_load_si512(degrees);
  const __m512i odd_node = _mm512_srli_epi64(node, 32);
  const __m512i odd_bound = _mm512_srli_epi64(bound, 32);
  for (uint32_t block = 0; block * 4 < fanout; ++block) {
    const Words even = PhiloxLanes(stream.key, stream.counter, node, block);
    const Words odd = PhiloxLanes(stream.key, stream.counter, odd_node, block);
#pragma GCC unroll 4
    for (uint32_t w = 0; w < 4; ++w) {
      const uint32_t j = block * 4 + w;
      if (j == fanout) return;
      const __m512i even_t = _mm512_srli_epi64(_mm512_mul_epu32(even.word[w], bound), 32);
      const __m512i odd_t = _mm512_mul_epu32(odd.word[w], odd_bound);
      _mm512_store_si512(picks + j * kGroupRows, _mm512_mask_blend_epi32(kOddLanes, even_t, odd_t));
    }
  }
}

void DrawAliasAvx512(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
                     uint32_t draws, uint32_t* slots, uint32_t* words) {
  const __m512i node = _mm512_load_si512(nodes);
  const __m512i bound = _mm512_load_si512(degrees);
  const __m512i odd_node = _mm512_srli_epi64(node, 32);
  const __m512i odd_bound = _mm512_srli_epi64(bound, 32);
  for (uint32_t block = 0; block * 2 < draws; ++block) {
    const Words even = PhiloxLanes(stream.key, stream.counter, node, block);
    const Words odd = PhiloxLanes(stream.key, stream.counter, odd_node, block);
#pragma GCC unroll 2
    for (uint32_t w = 0; w < 4; w += 2) {
      const uint32_t j = block * 2 + w / 2;
      if (j == draws) return;
      const __m512i even_t = _mm512_srli_epi64(_mm512_mul_epu32(even.word[w], bound), 32);
      const __m512i odd_t = _mm512_mul_epu32(odd.word[w], odd_bound);
      const __m512i odd_word = _mm512_slli_epi64(odd.word[w + 1], 32);
      _mm512_store_si512(slots + j * kGroupRows, _mm512_mask_blend_epi32(kOddLanes, even_t, odd_t));
      _mm512_store_si512(words + j * kGroupRows,
                         _mm512_mask_blend_epi32(kOddLanes, even.word[w + 1], odd_word));
    }
  }
}

void FindRepeatsAvx512(const uint32_t* picks, uint32_t draws, uint16_t* repeats) {
  for (uint32_t j = 0; j < draws; ++j) {
    const __m512i pick = _mm512_load_si512(picks + j * kGroupRows);
    uint32_t repeated = 0;
    for (uint32_t i = 0; i < j; ++i) {
      repeated |= _mm512_cmpeq_epi32_mask(pick, _mm512_load_si512(picks + i * kGroupRows));
    }
    repeats[j] = static_cast<uint16_t>(repeated);
  }
}

}  // namespace gnnd

#endif  // defined(__x86_64__)
