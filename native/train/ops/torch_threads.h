#pragma once

#include <ATen/Parallel.h>

#include <cstdint>
#include <mutex>

#include "train/ops/parallel.h"

namespace gnnd {

// Of the calling thread: so many for our loops, and for torch's own operators, for which OpenMP
// keeps the number. Models of ours leave torch none that a second thread would pay for: two pools
// of threads wait for each other's cores.
inline void UseThreads(uint32_t ours, uint32_t torchs) {
  UseTeamOf(ours);
  if (at::get_num_threads() != static_cast<int>(torchs)) {
    at::set_num_threads(static_cast<int>(torchs));
  }
}

// One for operators beside each other, of which there are none. Torch takes this once per process,
// before any work.
inline void UseOneInteropThread() {
  static std::once_flag once;
  std::call_once(once, [] { at::set_num_interop_threads(1); });
}

}  // namespace gnnd
