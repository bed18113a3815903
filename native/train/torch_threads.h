#pragma once

#include <ATen/Parallel.h>

#include <cstdint>

namespace gnnd {

// Torch's own threads of the calling thread, for which OpenMP keeps the number.
inline void UseThreads(uint32_t threads) {
  if (at::get_num_threads() != static_cast<int>(threads)) {
    at::set_num_threads(static_cast<int>(threads));
  }
}

}  // namespace gnnd
