#pragma once

#include <algorithm>
#include <cstdint>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace gnnd {

// Bounds the teams of ParallelRows that the calling thread starts. OpenMP keeps a team for each
// thread that starts one, and this number, too.
inline void UseTeamOf([[maybe_unused]] uint32_t threads) {
#if defined(_OPENMP)
  omp_set_num_threads(static_cast<int>(threads));
#endif
}

// Runs body(begin, end) over [0, rows) on torch's threads (the same OpenMP runtime), in equal
// stretches of at least `grain` rows. A row belongs to one call, so that results do not depend on
// the number of threads. `body` must not throw. Without OpenMP it is one call.
template <typename Body>
void ParallelRows(uint32_t rows, [[maybe_unused]] uint32_t grain, const Body& body) {
#if defined(_OPENMP)
  const auto useful = std::max<uint32_t>(1, rows / std::max<uint32_t>(1, grain));
  const auto threads = std::min(static_cast<uint32_t>(omp_get_max_threads()), useful);
  if (threads > 1 && omp_in_parallel() == 0) {
    // No num_threads clause: libgomp would rebuild its pool whenever the number changes.
#pragma omp parallel
    {
      const auto team = std::min(static_cast<uint32_t>(omp_get_num_threads()), threads);
      const auto self = static_cast<uint32_t>(omp_get_thread_num());
      const uint64_t begin = uint64_t{rows} * std::min(self, team) / team;
      const uint64_t end = uint64_t{rows} * std::min(self + 1, team) / team;
      if (begin < end) body(static_cast<uint32_t>(begin), static_cast<uint32_t>(end));
    }
    return;
  }
#endif
  if (rows > 0) body(uint32_t{0}, rows);
}

}  // namespace gnnd
