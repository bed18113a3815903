#pragma once

// Marks functions that do nothing but prefetch. GCC takes such a function for one without effect
// and drops the calls of it; what is inlined before it looks (always_inline) stays.
#define GNND_PREFETCHES inline __attribute__((always_inline))
