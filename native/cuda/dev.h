#pragma once

#include <cstdint>

#include "core/base/hd.h"
#include "cuda/queue.h"

// The language of kernels: the only functions that a .cu file may use besides core/draw and plain
// C++. It is small, because every word of it has two meanings that must agree: nvcc's, and that of
// the shim (cuda/shim/shim.h), which runs the same kernels as fibers on a processor, in tests and
// in simulated devices.
//
// It consists of loops in steps of the grid, block barriers, the warp and atomic functions below,
// and shared memory through GNND_SHARED. test/unit/tidy/cuda.test.ts checks .cu files for it. These
// rules go beyond what the test can see:
//
//   - No thread waits for a thread of another block, nor spins: blocks may run one after another.
//   - All threads of a block meet at the same barriers, all lanes of a mask at the same warp
//     functions. A loop around either runs equally often in each thread; threads without work are
//     excluded inside it.
//   - A mask follows from lane numbers alone.
//   - A device function with shared arrays of its own ends with a barrier, because a second call
//     gets the same arrays.
//   - Blocks have at most kMaxThreads threads and are whole warps.
//   - Sums of floats run in an order that depends on sizes and constants, never on the grid.

namespace gnnd::cuda {

inline constexpr uint32_t kFullMask = 0xFFFFFFFF;

// For rows of at least 16 bytes; addresses are multiples of 16.
struct alignas(16) Bytes16 {
  uint32_t word[4];
};

}  // namespace gnnd::cuda

#if defined(__CUDACC__)

#define GNND_KERNEL __global__ void __launch_bounds__(::gnnd::cuda::kMaxThreads)
#define GNND_DEVICE __device__ __forceinline__
#define GNND_UNROLL _Pragma("unroll")
#define GNND_SHARED(T, name, n) __shared__ T name[n]
#define GNND_DYNAMIC_SHARED(T, name)                                   \
  extern __shared__ __align__(16) unsigned char gnnd_dynamic_shared[]; \
  T* const name = reinterpret_cast<T*>(gnnd_dynamic_shared)

namespace gnnd::cuda {

GNND_DEVICE uint32_t ThreadInBlock() { return threadIdx.x; }
GNND_DEVICE uint32_t BlockThreads() { return blockDim.x; }
GNND_DEVICE uint32_t BlockIndex() { return blockIdx.x; }
GNND_DEVICE uint32_t Blocks() { return gridDim.x; }

GNND_DEVICE void BlockSync() { __syncthreads(); }
GNND_DEVICE void WarpSync(uint32_t mask) { __syncwarp(mask); }

// The value of lane `source` in this lane's group of `width`, a power of two up to 32.
template <typename T>
GNND_DEVICE T Shuffle(uint32_t mask, T value, uint32_t source, uint32_t width = kWarpLanes) {
  return __shfl_sync(mask, value, static_cast<int>(source), static_cast<int>(width));
}
GNND_DEVICE uint32_t Ballot(uint32_t mask, bool bit) { return __ballot_sync(mask, bit); }
// The lanes of the mask that hold the same value as this lane.
GNND_DEVICE uint32_t MatchAny(uint32_t mask, uint32_t value) {
  return __match_any_sync(mask, value);
}
GNND_DEVICE uint32_t MatchAny(uint32_t mask, uint64_t value) {
  return __match_any_sync(mask, static_cast<unsigned long long>(value));
}

// Relaxed atomics; each returns the previous value.
GNND_DEVICE uint32_t AtomicAdd(uint32_t* to, uint32_t value) { return atomicAdd(to, value); }
GNND_DEVICE uint64_t AtomicAdd(uint64_t* to, uint64_t value) {
  return atomicAdd(reinterpret_cast<unsigned long long*>(to), value);
}
GNND_DEVICE uint32_t AtomicOr(uint32_t* to, uint32_t bits) { return atomicOr(to, bits); }
GNND_DEVICE uint64_t AtomicMax(uint64_t* to, uint64_t value) {
  return atomicMax(reinterpret_cast<unsigned long long*>(to), value);
}
GNND_DEVICE uint32_t AtomicCas(uint32_t* to, uint32_t expected, uint32_t value) {
  return atomicCAS(to, expected, value);
}
GNND_DEVICE uint64_t AtomicCas(uint64_t* to, uint64_t expected, uint64_t value) {
  return atomicCAS(reinterpret_cast<unsigned long long*>(to), expected, value);
}

// Loads a word that other threads of this kernel change by atomic functions.
template <typename T>
GNND_DEVICE T LoadRelaxed(const T* from) {
  return *static_cast<const volatile T*>(from);
}
template <typename T>
GNND_DEVICE void StoreRelaxed(T* to, T value) {
  *static_cast<volatile T*>(to) = value;
}
// Loads a value that nobody changes while the kernel runs.
template <typename T>
GNND_DEVICE T LoadConst(const T* from) {
  return __ldg(from);
}
GNND_DEVICE uint64_t LoadConst(const uint64_t* from) {
  return __ldg(reinterpret_cast<const unsigned long long*>(from));
}
GNND_DEVICE Bytes16 LoadConst(const Bytes16* from) {
  const uint4 value = __ldg(reinterpret_cast<const uint4*>(from));
  return {{value.x, value.y, value.z, value.w}};
}
// Stores a value that is not read again soon.
GNND_DEVICE void StoreStreaming(Bytes16* to, Bytes16 value) {
  __stcs(reinterpret_cast<uint4*>(to),
         make_uint4(value.word[0], value.word[1], value.word[2], value.word[3]));
}
GNND_DEVICE void StoreStreaming(uint32_t* to, uint32_t value) { __stcs(to, value); }
GNND_DEVICE void StoreStreaming(uint16_t* to, uint16_t value) { __stcs(to, value); }

GNND_DEVICE uint32_t CountBits(uint32_t bits) { return static_cast<uint32_t>(__popc(bits)); }

}  // namespace gnnd::cuda

#else
#include "cuda/shim/shim_dev.h"
#endif

namespace gnnd::cuda {

// Launches a kernel on the queue's stream; nothing for 0 blocks. A launch that fails leaves its
// error with the device's library. In simulated devices a kernel that breaks a rule above throws
// shim::Fault from the code that runs the stream.
template <typename... P, typename... A>
void Launch(const Queue& queue, void (*kernel)(P...), uint32_t blocks, uint32_t threads,
            uint32_t shared_bytes, const A&... arguments) {
  if (blocks == 0) return;
#if defined(__CUDACC__)
  kernel<<<blocks, threads, shared_bytes, queue.stream>>>(static_cast<P>(arguments)...);
#else
  shim::Submit(reinterpret_cast<shim::Stream*>(queue.stream), {blocks, threads, shared_bytes},
               [=] { kernel(static_cast<P>(arguments)...); });
#endif
}

// Launches a kernel with one thread per piece of work.
template <typename... P, typename... A>
void LaunchFor(const Queue& queue, uint64_t n, void (*kernel)(P...), const A&... arguments) {
  Launch(queue, kernel, PlanGrid(n, kMaxThreads, queue.max_blocks), kMaxThreads, 0, arguments...);
}

GNND_DEVICE uint32_t Lane() { return ThreadInBlock() % kWarpLanes; }
GNND_DEVICE uint64_t GridThread() {
  return uint64_t{BlockIndex()} * BlockThreads() + ThreadInBlock();
}
GNND_DEVICE uint64_t GridThreads() { return uint64_t{Blocks()} * BlockThreads(); }

// The mask of this lane's group of `width` lanes.
GNND_DEVICE uint32_t GroupMask(uint32_t width) {
  return width == kWarpLanes ? kFullMask : ((1U << width) - 1) << Lane() / width * width;
}

// The value of the lane `distance` below; lanes without such a lane keep their own.
template <typename T>
GNND_DEVICE T ShuffleUp(uint32_t mask, T value, uint32_t distance, uint32_t width = kWarpLanes) {
  const uint32_t lane = Lane() % width;
  return Shuffle(mask, value, lane >= distance ? lane - distance : lane, width);
}
template <typename T>
GNND_DEVICE T ShuffleXor(uint32_t mask, T value, uint32_t bits, uint32_t width = kWarpLanes) {
  return Shuffle(mask, value, Lane() % width ^ bits, width);
}

}  // namespace gnnd::cuda
