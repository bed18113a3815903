#include <cstring>

#include "core/graph/stream.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace gnnd::GNND_SET {
namespace {

constexpr uint64_t kLineBytes = 64;

// What is stored at once past the caches, and whether that is so.
#if defined(__SSE2__)
struct Sixteen {
  static constexpr uint64_t kBytes = 16;
  static void Put(const std::byte* from, std::byte* to) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
};
#else
struct Sixteen {
  static constexpr uint64_t kBytes = 16;
  static void Put(const std::byte* from, std::byte* to) { std::memcpy(to, from, kBytes); }
};
#endif

#if defined(__AVX512F__)
struct Widest {
  static constexpr uint64_t kBytes = 64;
  static void Put(const std::byte* from, std::byte* to) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
  }
};
#elif defined(__AVX2__)
struct Widest {
  static constexpr uint64_t kBytes = 32;
  static void Put(const std::byte* from, std::byte* to) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
};
#else
using Widest = Sixteen;
#endif

template <typename Unit>
void GatherBy(const StreamedRows& table, const uint32_t* nodes, uint64_t count, PrefetchLevel level,
              std::byte* out) {
  const uint64_t ahead = level == PrefetchLevel::kL2 ? 16 : 6;
  const uint64_t asked = table.row_bytes < kFollowedRowBytes ? table.row_bytes : 1;
  const auto ask = [&](uint32_t node) __attribute__((always_inline)) {
    const std::byte* row = table.rows + node * table.row_bytes;
    const uint64_t skew = reinterpret_cast<uintptr_t>(row) % kLineBytes;
    for (uint64_t at = 0; at < asked + skew; at += kLineBytes) Prefetch(level, row - skew + at);
  };
  for (uint64_t i = 0; i < (ahead < count ? ahead : count); ++i) ask(nodes[i]);
  for (uint64_t i = 0; i < count; ++i) {
    if (i + ahead < count) ask(nodes[i + ahead]);
    const std::byte* row = table.rows + nodes[i] * table.row_bytes;
    for (uint64_t at = 0; at < table.row_bytes; at += Unit::kBytes) Unit::Put(row + at, out + at);
    out += table.row_bytes;
  }
}

void Gather(const StreamedRows& table, const uint32_t* nodes, uint64_t count, PrefetchLevel level,
            std::byte* out) {
  const uint64_t start = reinterpret_cast<uintptr_t>(out);
  if ((table.row_bytes | start) % Widest::kBytes == 0) {
    GatherBy<Widest>(table, nodes, count, level, out);
  } else {
    GatherBy<Sixteen>(table, nodes, count, level, out);
  }
#if defined(__SSE2__)
  _mm_sfence();  // A lock's release does not wait for these stores.
#endif
}

}  // namespace

const StreamLoops kStreamLoops = {Gather};

}  // namespace gnnd::GNND_SET
