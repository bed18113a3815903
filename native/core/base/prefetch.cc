#include "core/base/prefetch.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/mapping.h"

namespace gnnd {
namespace {

#if defined(__x86_64__)

constexpr uint64_t kLineBytes = 64;
constexpr uint64_t kBytes = uint64_t{4} << 20;
// Rounds of which the fastest counts: the host's other work disturbs the others.
constexpr uint32_t kRounds = 5;

// The index of every line once, in an order that no prefetcher guesses.
std::vector<uint32_t> ShuffledLines() {
  std::vector<uint32_t> lines(kBytes / kLineBytes);
  std::iota(lines.begin(), lines.end(), 0U);
  uint64_t state = 1;
  for (size_t left = lines.size(); left > 1; --left) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    std::swap(lines[left - 1], lines[(state >> 33) % left]);
  }
  return lines;
}

// Nanoseconds to read all lines, after each has been flushed from the caches.
uint64_t ReadAll(std::span<const std::byte> memory, const std::vector<uint32_t>& lines,
                 PrefetchLevel level) {
  constexpr size_t kAhead = 64;
  for (uint64_t at = 0; at < memory.size(); at += kLineBytes) _mm_clflush(memory.data() + at);
  _mm_mfence();
  const std::byte* const base = memory.data();
  uint32_t sum = 0;
  const uint64_t start_ns = MonotonicNs();
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i + kAhead < lines.size()) Prefetch(level, base + lines[i + kAhead] * kLineBytes);
    sum += static_cast<uint32_t>(base[lines[i] * kLineBytes]);
  }
  const uint64_t ns = MonotonicNs() - start_ns;
  // Pretends to use the sum, so that the compiler does not drop the reads.
  asm volatile("" : : "r"(sum));
  return ns;
}

PrefetchLevel Measure() {
  const Result<Mapping> memory = Mapping::Anonymous(kBytes);
  if (!memory.ok()) return PrefetchLevel::kL1;
  std::byte* const bytes = memory->data();
  for (uint64_t at = 0; at < kBytes; at += kLineBytes) bytes[at] = std::byte{1};
  const std::vector<uint32_t> lines = ShuffledLines();
  uint64_t near_ns = UINT64_MAX;
  uint64_t far_ns = UINT64_MAX;
  for (uint32_t round = 0; round < kRounds; ++round) {
    near_ns = std::min(near_ns, ReadAll(memory->bytes(), lines, PrefetchLevel::kL1));
    far_ns = std::min(far_ns, ReadAll(memory->bytes(), lines, PrefetchLevel::kL2));
  }
  // Lines in the second cache still have a little way to go, so kL2 must win by a tenth.
  return far_ns < near_ns - near_ns / 10 ? PrefetchLevel::kL2 : PrefetchLevel::kL1;
}

#else

PrefetchLevel Measure() { return PrefetchLevel::kL1; }

#endif

}  // namespace

PrefetchLevel BestPrefetchLevel() {
  static const PrefetchLevel best = Measure();
  return best;
}

const char* NameOf(PrefetchLevel level) { return level == PrefetchLevel::kL1 ? "L1" : "L2"; }

}  // namespace gnnd
