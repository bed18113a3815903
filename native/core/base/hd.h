#pragma once

// GNND_HD marks inline code that both the host compiler and nvcc compile: everything that decides
// bits (draws, permutation, order) is written once, in headers, with this mark.

#if defined(__CUDACC__)
#define GNND_HD __host__ __device__ __forceinline__
#else
#define GNND_HD inline __attribute__((always_inline))
#endif
