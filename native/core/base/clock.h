#pragma once

#include <time.h>

#include <cstdint>

#include "core/base/failpoint.h"

// The one clock of native code: CLOCK_MONOTONIC, which all processes of a host share.

namespace gnnd {

inline constexpr uint64_t kNsPerSecond = 1'000'000'000;
inline constexpr uint64_t kNsPerMs = 1'000'000;

// Time for deadlines that the kernel keeps.
inline uint64_t KernelNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

// Time for everything else. Tests of counted time can set it (GNND_MADE_NS).
inline uint64_t MonotonicNs() { return GNND_MADE_NS(KernelNs()); }

inline timespec ToTimespec(uint64_t ns) {
  timespec result{};
  result.tv_sec = static_cast<time_t>(ns / kNsPerSecond);
  result.tv_nsec = static_cast<int64_t>(ns % kNsPerSecond);
  return result;
}

}  // namespace gnnd
