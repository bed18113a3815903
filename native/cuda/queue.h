#pragma once

#include <cstdint>

struct CUstream_st;

namespace gnnd::cuda {

inline constexpr uint32_t kMaxThreads = 256;  // most threads of a block
inline constexpr uint32_t kWarpLanes = 32;    // lanes of a warp

// A stream in the device's own library; in simulated devices a shim::Stream.
using StreamHandle = CUstream_st*;

// A target of launches. At most max_blocks blocks run, and they loop: a multiple of a GPU's
// multiprocessors, or few in a simulated device.
struct Queue {
  StreamHandle stream = nullptr;
  uint32_t max_blocks = 1;
};

// Blocks of `threads` for n pieces of work, one per thread: at most max_blocks, 0 for n = 0.
constexpr uint32_t PlanGrid(uint64_t n, uint32_t threads, uint32_t max_blocks) {
  const uint64_t blocks = n / threads + (n % threads == 0 ? 0 : 1);
  return blocks < max_blocks ? static_cast<uint32_t>(blocks) : max_blocks;
}

}  // namespace gnnd::cuda
