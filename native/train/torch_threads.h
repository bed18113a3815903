#pragma once

#include <ATen/Parallel.h>

#include <cstdint>
#include <mutex>

namespace gnnd {

// Torch's own threads of the calling thread, for which OpenMP keeps the number.
inline void UseThreads(uint32_t threads) {
  if (at::get_num_threads() != static_cast<int>(threads)) {
    at::set_num_threads(static_cast<int>(threads));
  }
}

// One for operators beside each other, of which there are none. Torch takes this once per process,
// before any work.
inline void UseOneInteropThread() {
  static std::once_flag once;
  std::call_once(once, [] { at::set_num_interop_threads(1); });
}

}  // namespace gnnd
