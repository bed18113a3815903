#pragma once

#include <cstdint>

// Lines of memory that are asked for before they are read.

// Marks functions that do nothing but prefetch. GCC takes such a function for one without effect
// and drops the calls of it; what is inlined before it looks (always_inline) stays.
#define GNND_PREFETCHES inline __attribute__((always_inline))

namespace gnnd {

// How near a line that was asked for comes. A core has few reads of its first cache under way at a
// time, and more of its second; how many, and whether asking for the second spares the first,
// differs by processor (docs/decisions/0034).
enum class PrefetchLevel : uint32_t { kL1 = 0, kL2 = 1 };

// The level at which this processor gets the most lines a second from memory. Measured at the first
// call in a process, in some 8 ms, with 4 MiB; kL1 where nothing was measured. Decides no bit.
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
