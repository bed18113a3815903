#pragma once

#include <algorithm>
#include <atomic>
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

// Runs body(begin, end) over [0, rows) on torch's threads (the same OpenMP runtime), in as many
// stretches as there are threads, or one for every `grain` rows. Stretch i ends at
// end_of(i + 1, number of stretches), which grows from 0 to `rows`. A row belongs to one call, so
// that results do not depend on the number of threads. `body` must not throw. Without OpenMP it is
// one call.
template <typename EndOf, typename Body>
void ParallelStretches(uint32_t rows, [[maybe_unused]] uint32_t grain,
                       [[maybe_unused]] const EndOf& end_of, const Body& body) {
#if defined(_OPENMP)
  const auto useful = std::max<uint32_t>(1, rows / std::max<uint32_t>(1, grain));
  const auto threads = std::min(static_cast<uint32_t>(omp_get_max_threads()), useful);
  if (threads > 1 && omp_in_parallel() == 0) {
    // No num_threads clause: libgomp would rebuild its pool whenever the number changes.
#pragma omp parallel
    {
      const auto team = std::min(static_cast<uint32_t>(omp_get_num_threads()), threads);
      const auto self = static_cast<uint32_t>(omp_get_thread_num());
      const uint32_t begin = end_of(std::min(self, team), team);
      const uint32_t end = end_of(std::min(self + 1, team), team);
      if (begin < end) body(begin, end);
    }
    return;
  }
#endif
  if (rows > 0) body(uint32_t{0}, rows);
}

// Stretches of as many rows each.
template <typename Body>
void ParallelRows(uint32_t rows, uint32_t grain, const Body& body) {
  const auto end_of = [rows](uint32_t stretch, uint32_t stretches) {
    return static_cast<uint32_t>(uint64_t{rows} * stretch / stretches);
  };
  ParallelStretches(rows, grain, end_of, body);
}

// Runs body(task) for every task below `tasks`, each on whichever of torch's threads is free: for
// tasks of unlike sizes, and where something else takes a core now and then.
template <typename Body>
void ParallelTasks(uint32_t tasks, const Body& body) {
  std::atomic<uint32_t> next{0};
  const auto end_of = [](uint32_t stretch, uint32_t) { return stretch; };
  ParallelStretches(tasks, 1, end_of, [&](uint32_t, uint32_t) {
    for (uint32_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) body(task);
  });
}

// body(begin, end) for rows of unlike work, such as sums over edges, `grain` at a time.
template <typename Body>
void ParallelSums(uint32_t rows, uint32_t grain, const Body& body) {
  ParallelTasks(rows / grain + (rows % grain == 0 ? 0 : 1),
                [&](uint32_t task) { body(task * grain, std::min(rows, (task + 1) * grain)); });
}

}  // namespace gnnd
