#include "core/sample/walk.h"

#if defined(__x86_64__)

#include "core/sample/philox_avx512.h"
#include "core/sample/walk_top.h"

// GCC 12 takes the deliberately undefined operand inside its own intrinsics for a mistake of ours.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace gnnd {
namespace {

constexpr uint32_t kLanes = 16;

// 32-bit results of the lanes at even and at odd places, interleaved.
void Store(uint32_t* out, __m512i even, __m512i odd) {
  constexpr __mmask16 kOddLanes = 0xAAAA;
  _mm512_storeu_si512(out, _mm512_mask_blend_epi32(kOddLanes, even, _mm512_slli_epi64(odd, 32)));
}

struct Compare {
  static uint64_t Equal(const uint32_t* values, uint32_t size, uint32_t value) {
    const __m512i wanted = _mm512_set1_epi32(static_cast<int>(value));
    uint64_t mask = 0;
    for (uint32_t i = 0; i < size; i += kLanes) {
      mask |= uint64_t{_mm512_cmpeq_epi32_mask(_mm512_loadu_si512(values + i), wanted)} << i;
    }
    return mask;
  }
  static uint64_t Above(const uint32_t* values, uint32_t size, uint32_t value) {
    const __m512i bound = _mm512_set1_epi32(static_cast<int>(value));
    uint64_t mask = 0;
    for (uint32_t i = 0; i < size; i += kLanes) {
      mask |= uint64_t{_mm512_cmpgt_epu32_mask(_mm512_loadu_si512(values + i), bound)} << i;
    }
    return mask;
  }
};

}  // namespace

void DrawWalksAvx512(const DrawStream& stream, const uint32_t* nodes, const uint32_t* blocks,
                     uint32_t count, WalkWords words) {
  for (uint32_t i = 0; i < count; i += kLanes) {
    const __m512i node = _mm512_loadu_si512(nodes + i);
    const __m512i block = _mm512_loadu_si512(blocks + i);
    const auto even = avx512::PhiloxLanes(stream.key, stream.counter, node, block);
    const auto odd = avx512::PhiloxLanes(stream.key, stream.counter, _mm512_srli_epi64(node, 32),
                                         _mm512_srli_epi64(block, 32));
    Store(words.low + i, even.word[0], odd.word[0]);
    Store(words.high + i, even.word[1], odd.word[1]);
    Store(words.end + i, even.word[2], odd.word[2]);
  }
}

uint32_t TopVisitsAvx512(const uint32_t* visits, uint32_t size, uint32_t most, uint32_t* nodes,
                         float* counts) {
  return TopVisits<Compare>(visits, size, most, nodes, counts);
}

}  // namespace gnnd

#endif  // defined(__x86_64__)
