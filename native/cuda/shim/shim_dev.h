#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda/shim/shim.h"

// The meaning of cuda/dev.h for a C++ compiler; only dev.h includes it and documents each function.

#define GNND_KERNEL void
#define GNND_DEVICE inline
#define GNND_UNROLL
// The static gives each place an address: an array per block and place.
#define GNND_SHARED(T, name, n)     \
  static const char name##_place{}; \
  T* const name = static_cast<T*>(::gnnd::shim::Shared(&name##_place, sizeof(T) * (n)))
#define GNND_DYNAMIC_SHARED(T, name) T* const name = static_cast<T*>(::gnnd::shim::DynamicShared())

namespace gnnd::cuda {

inline uint32_t ThreadInBlock() { return shim::Thread(); }
inline uint32_t BlockThreads() { return shim::BlockThreads(); }
inline uint32_t BlockIndex() { return shim::Block(); }
inline uint32_t Blocks() { return shim::Blocks(); }

inline void BlockSync(uint32_t line = __builtin_LINE()) { shim::BlockSync(line); }
inline void WarpSync(uint32_t mask, uint32_t line = __builtin_LINE()) {
  shim::Meet(shim::Meeting::kSync, mask, 0, 0, line);
}
template <typename T>
T Shuffle(uint32_t mask, T value, uint32_t source, uint32_t width = kWarpLanes,
          uint32_t line = __builtin_LINE()) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  const uint32_t lane = ThreadInBlock() % kWarpLanes;
  const uint32_t from = lane / width * width + source % width;
  bits = shim::Meet(shim::Meeting::kShuffle, mask, bits, from, line);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline uint32_t Ballot(uint32_t mask, bool bit, uint32_t line = __builtin_LINE()) {
  return static_cast<uint32_t>(shim::Meet(shim::Meeting::kBallot, mask, bit ? 1 : 0, 0, line));
}
template <typename T>
uint32_t MatchAny(uint32_t mask, T value, uint32_t line = __builtin_LINE()) {
  return static_cast<uint32_t>(shim::Meet(shim::Meeting::kMatch, mask, value, 0, line));
}

template <typename T, typename Change>
T AtomicUpdate(T* to, const Change& change) {
  shim::AtAtomic();
  T before = __atomic_load_n(to, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(to, &before, change(before), false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
  }
  return before;
}
template <typename T>
T AtomicAdd(T* to, std::type_identity_t<T> value) {
  return AtomicUpdate(to, [=](T before) { return before + value; });
}
inline uint32_t AtomicOr(uint32_t* to, uint32_t bits) {
  return AtomicUpdate(to, [=](uint32_t before) { return before | bits; });
}
inline uint64_t AtomicMax(uint64_t* to, uint64_t value) {
  return AtomicUpdate(to, [=](uint64_t before) { return before > value ? before : value; });
}
template <typename T>
T AtomicCas(T* to, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return AtomicUpdate(to, [=](T before) { return before == expected ? value : before; });
}

template <typename T>
T LoadRelaxed(const T* from) {
  return __atomic_load_n(from, __ATOMIC_RELAXED);
}
template <typename T>
void StoreRelaxed(T* to, std::type_identity_t<T> value) {
  __atomic_store_n(to, value, __ATOMIC_RELAXED);
}
template <typename T>
T LoadConst(const T* from) {
  return *from;
}
template <typename T>
void StoreStreaming(T* to, std::type_identity_t<T> value) {
  *to = value;
}

inline uint32_t CountBits(uint32_t bits) { return static_cast<uint32_t>(__builtin_popcount(bits)); }

}  // namespace gnnd::cuda
