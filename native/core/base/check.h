#pragma once

#include <cstdio>
#include <cstdlib>

// GNND_CHECK: an invariant of ours, always on. Never for input errors: those are a Status.

#define GNND_CHECK(condition)                                                            \
  do {                                                                                   \
    if (__builtin_expect(!(condition), 0)) {                                             \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)

// GNND_DCHECK: the same inside per-element loops; compiled in debug and sanitizer builds only.
#ifdef NDEBUG
#define GNND_DCHECK(condition) static_cast<void>(0)
#else
#define GNND_DCHECK(condition) GNND_CHECK(condition)
#endif
