#pragma once

#include <ATen/Parallel.h>

#include <cstdint>
#include <mutex>

#include "train/ops/parallel.h"

namespace gnnd {

// Sets the calling thread's number of threads for our loops, and for torch's own operators, which
// take OpenMP's number. Our own models leave torch no work for a second thread, and two pools of
// threads would wait for each other's cores.
inline void UseThreads(uint32_t ours, uint32_t torchs) {
  UseTeamOf(ours);
  if (at::get_num_threads() != static_cast<int>(torchs)) {
    at::set_num_threads(static_cast<int>(torchs));
  }
}

// Gives torch one thread for parallel operators, because there are none. Torch accepts this once
// per process, before any work.
inline void UseOneInteropThread() {
  static std::once_flag once;
  std::call_once(once, [] { at::set_num_interop_threads(1); });
}

}  // namespace gnnd
