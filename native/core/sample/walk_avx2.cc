#include "core/sample/walk.h"

#if defined(__x86_64__)

#include "core/sample/philox_avx2.h"
#include "core/sample/walk_top.h"

namespace gnnd {
namespace {

constexpr uint32_t kLanes = 8;

__m256i Load(const uint32_t* values) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
}

// 32-bit results of the lanes at even and at odd places, interleaved.
void Store(uint32_t* out, __m256i even, __m256i odd) {
  constexpr int kOddLanes = 0xAA;
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                      _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), kOddLanes));
}

struct Compare {
  template <typename Predicate>
  static uint64_t Mask(const uint32_t* values, uint32_t size, const Predicate& predicate) {
    uint64_t mask = 0;
    for (uint32_t i = 0; i < size; i += kLanes) {
      const __m256 holds = _mm256_castsi256_ps(predicate(Load(values + i)));
      mask |= static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_ps(holds))) << i;
    }
    return mask;
  }
  static uint64_t Equal(const uint32_t* values, uint32_t size, uint32_t value) {
    const __m256i wanted = _mm256_set1_epi32(static_cast<int>(value));
    return Mask(values, size, [&](__m256i v) { return _mm256_cmpeq_epi32(v, wanted); });
  }
  // Of values below 2^31.
  static uint64_t Above(const uint32_t* values, uint32_t size, uint32_t value) {
    const __m256i bound = _mm256_set1_epi32(static_cast<int>(value));
    return Mask(values, size, [&](__m256i v) { return _mm256_cmpgt_epi32(v, bound); });
  }
};

}  // namespace

void DrawWalksAvx2(const DrawStream& stream, const uint32_t* nodes, const uint32_t* blocks,
                   uint32_t count, WalkWords words) {
  for (uint32_t i = 0; i < count; i += kLanes) {
    const __m256i node = Load(nodes + i);
    const __m256i block = Load(blocks + i);
    const auto even = avx2::PhiloxLanes(stream.key, stream.counter, node, block);
    const auto odd = avx2::PhiloxLanes(stream.key, stream.counter, _mm256_srli_epi64(node, 32),
                                       _mm256_srli_epi64(block, 32));
    Store(words.low + i, even.word[0], odd.word[0]);
    Store(words.high + i, even.word[1], odd.word[1]);
    Store(words.end + i, even.word[2], odd.word[2]);
  }
}

uint32_t TopVisitsAvx2(const uint32_t* visits, uint32_t size, uint32_t most, uint32_t* nodes,
                       float* counts) {
  return TopVisits<Compare>(visits, size, most, nodes, counts);
}

}  // namespace gnnd

#endif  // defined(__x86_64__)
