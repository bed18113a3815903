#pragma once

#include <cstdint>

// Requests for cache lines ahead of the reads that need them.

// Marks functions that only prefetch. GCC takes such a function for one without effect and drops
// calls of it, unless it is inlined before that (always_inline).
#define GNND_PREFETCHES inline __attribute__((always_inline))

namespace gnnd {

// The cache level that a requested line comes into. A core has few reads into its first cache under
// way at a time and more into its second; how many, and whether asking for the second spares the
// first, differs by processor (docs/decisions/0034).
enum class PrefetchLevel : uint32_t { kL1 = 0, kL2 = 1 };

// The level at which this processor gets the most lines a second from memory. The first call in a
// process measures it with 4 MiB in some 8 ms; kL1 where nothing can be measured. Decides no bit.
PrefetchLevel BestPrefetchLevel();

const char* NameOf(PrefetchLevel level);

// Asks for the line that holds `at`, to read or to write.
GNND_PREFETCHES void Prefetch(PrefetchLevel level, const void* at) {
  if (level == PrefetchLevel::kL1) {
    __builtin_prefetch(at, 0, 3);
  } else {
    __builtin_prefetch(at, 0, 2);
  }
}

}  // namespace gnnd
