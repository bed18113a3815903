#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "train/ops/team.h"

namespace gnnd {

// Bounds the number of threads, the caller included, that run the loops below for it.
inline void UseTeamOf(uint32_t threads) { Team::Mine().Use(threads); }

// Runs body(begin, end) over [0, rows) on the calling thread's team, in as many stretches as that
// has threads, or one for every `grain` rows. Stretch i ends at end_of(i + 1, number of stretches),
// which grows from 0 to `rows`. A row belongs to one call, so that results do not depend on the
// number of threads. `body` must not throw; a loop within it is one call.
template <typename EndOf, typename Body>
void ParallelStretches(uint32_t rows, uint32_t grain, const EndOf& end_of, const Body& body) {
  Team& team = Team::Mine();
  const uint32_t useful = std::max<uint32_t>(1, rows / std::max<uint32_t>(1, grain));
  const uint32_t stretches = std::min(team.threads(), useful);
  if (stretches > 1) {
    team.Run(stretches, [&](uint32_t i) {
      const uint32_t begin = end_of(i, stretches);
      const uint32_t end = end_of(i + 1, stretches);
      if (begin < end) body(begin, end);
    });
  } else if (rows > 0) {
    body(uint32_t{0}, rows);
  }
}

// ParallelStretches with stretches of equal length.
template <typename Body>
void ParallelRows(uint32_t rows, uint32_t grain, const Body& body) {
  const auto end_of = [rows](uint32_t stretch, uint32_t stretches) {
    return static_cast<uint32_t>(uint64_t{rows} * stretch / stretches);
  };
  ParallelStretches(rows, grain, end_of, body);
}

// Runs body(task) for every task below `tasks`, each on the next free thread: for tasks of
// different sizes, and for hosts where other work takes a core now and then.
template <typename Body>
void ParallelTasks(uint32_t tasks, const Body& body) {
  std::atomic<uint32_t> next{0};
  const auto end_of = [](uint32_t stretch, uint32_t) { return stretch; };
  ParallelStretches(tasks, 1, end_of, [&](uint32_t, uint32_t) {
    for (uint32_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) body(task);
  });
}

// Runs body(begin, end) for rows of different cost, such as sums over edges, `grain` at a time.
template <typename Body>
void ParallelSums(uint32_t rows, uint32_t grain, const Body& body) {
  ParallelTasks(rows / grain + (rows % grain == 0 ? 0 : 1),
                [&](uint32_t task) { body(task * grain, std::min(rows, (task + 1) * grain)); });
}

}  // namespace gnnd
