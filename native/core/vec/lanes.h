#pragma once

#include <cstdint>
#include <cstring>

#include "core/base/bfloat16.h"
#include "core/base/half.h"

// Vectors of 16 elements, in parts that are registers, for all instruction sets. A set's header
// defines GNND_PART_LANES, the 32-bit lanes of its registers, and includes this. See vec.h.

#define GNND_VEC [[gnu::always_inline]] static inline
// Runs for each part of a vector.
#define GNND_PARTS _Pragma("GCC unroll 4") for (uint32_t p = 0; p < kParts; ++p)

namespace gnnd::GNND_SET {

constexpr uint32_t kLanes = 16;
constexpr uint32_t kPartLanes = GNND_PART_LANES;
constexpr uint32_t kParts = kLanes / kPartLanes;

template <typename T>
struct Lanes16 {
  typedef T Part __attribute__((vector_size(kPartLanes * sizeof(T))));
  Part part[kParts];
};
using U32x16 = Lanes16<uint32_t>;
using F32x16 = Lanes16<float>;

template <typename T>
GNND_VEC Lanes16<T> Load(const T* from) {
  Lanes16<T> lanes;
  GNND_PARTS std::memcpy(&lanes.part[p], from + p * kPartLanes, sizeof lanes.part[p]);
  return lanes;
}

template <typename T>
GNND_VEC void Store(T* to, const Lanes16<T>& lanes) {
  GNND_PARTS std::memcpy(to + p * kPartLanes, &lanes.part[p], sizeof lanes.part[p]);
}

template <typename T>
GNND_VEC Lanes16<T> Broadcast(T value) {
  Lanes16<T> lanes;
  GNND_PARTS lanes.part[p] = typename Lanes16<T>::Part{} + value;
  return lanes;
}

template <typename T>
GNND_VEC Lanes16<T> operator+(Lanes16<T> a, const Lanes16<T>& b) {
  GNND_PARTS a.part[p] += b.part[p];
  return a;
}

template <typename T>
GNND_VEC Lanes16<T> operator-(Lanes16<T> a, const Lanes16<T>& b) {
  GNND_PARTS a.part[p] -= b.part[p];
  return a;
}

template <typename T>
GNND_VEC Lanes16<T> operator*(Lanes16<T> a, const Lanes16<T>& b) {
  GNND_PARTS a.part[p] *= b.part[p];
  return a;
}

GNND_VEC U32x16 operator^(U32x16 a, const U32x16& b) {
  GNND_PARTS a.part[p] ^= b.part[p];
  return a;
}

GNND_VEC U32x16 operator>>(U32x16 a, uint32_t bits) {
  GNND_PARTS a.part[p] >>= bits;
  return a;
}

// Loads the first lanes of a vector at the end of an array, as many as `tail` counts (a set's Tail,
// made by its TailOf). Nothing beyond them is read or written; other lanes are 0. This version goes
// lane by lane, for element types and sets that have no better way.
template <typename T, typename Tail>
GNND_VEC Lanes16<T> Load(const T* from, const Tail& tail) {
  Lanes16<T> lanes{};
  GNND_PARTS {
    const T* at = from + p * kPartLanes;
    if (tail.count >= (p + 1) * kPartLanes) {
      std::memcpy(&lanes.part[p], at, sizeof lanes.part[p]);
    } else if (tail.count > p * kPartLanes) {
      for (uint32_t i = 0; i < tail.count - p * kPartLanes; ++i) lanes.part[p][i] = at[i];
    }
  }
  return lanes;
}

template <typename T, typename Tail>
GNND_VEC void Store(T* to, const Lanes16<T>& lanes, const Tail& tail) {
  GNND_PARTS {
    T* at = to + p * kPartLanes;
    if (tail.count >= (p + 1) * kPartLanes) {
      std::memcpy(at, &lanes.part[p], sizeof lanes.part[p]);
    } else if (tail.count > p * kPartLanes) {
      for (uint32_t i = 0; i < tail.count - p * kPartLanes; ++i) at[i] = lanes.part[p][i];
    }
  }
}

// Converts bfloat16 to float32 and back, to the nearest, ties to even; every NaN becomes quiet.
typedef uint16_t Bfloat16Part __attribute__((vector_size(kPartLanes * sizeof(Bfloat16))));

GNND_VEC F32x16::Part WidenPart(const Bfloat16* from) {
  Bfloat16Part bits;
  std::memcpy(&bits, from, sizeof bits);
  return (F32x16::Part)(__builtin_convertvector(bits, U32x16::Part) << 16);
}
GNND_VEC Bfloat16Part NarrowPart(F32x16::Part value) {
  const auto bits = (U32x16::Part)value;
  const auto is_nan = (U32x16::Part)(value != value);
  const U32x16::Part rounded = (bits + (0x7FFFU + ((bits >> 16) & 1U))) >> 16;
  return __builtin_convertvector((rounded & ~is_nan) | (is_nan & kBfloat16Nan), Bfloat16Part);
}
GNND_VEC F32x16 Load(const Bfloat16* from) {
  F32x16 lanes;
  GNND_PARTS lanes.part[p] = WidenPart(from + p * kPartLanes);
  return lanes;
}
GNND_VEC void Store(Bfloat16* to, const F32x16& lanes) {
  GNND_PARTS {
    const Bfloat16Part bits = NarrowPart(lanes.part[p]);
    std::memcpy(to + p * kPartLanes, &bits, sizeof bits);
  }
}
template <typename Tail>
GNND_VEC F32x16 Load(const Bfloat16* from, const Tail& tail) {
  Bfloat16 elements[kLanes] = {};
  std::memcpy(elements, from, tail.count * sizeof(Bfloat16));
  return Load(elements);
}
template <typename Tail>
GNND_VEC void Store(Bfloat16* to, const F32x16& lanes, const Tail& tail) {
  Bfloat16 elements[kLanes];
  Store(elements, lanes);
  std::memcpy(to, elements, tail.count * sizeof(Bfloat16));
}

// Vectors of eight elements, for sums over lanes, whose order is frozen.
template <typename T>
struct EightOf {
  typedef T Type __attribute__((vector_size(8 * sizeof(T))));
};
template <typename T>
using Eight = typename EightOf<T>::Type;

template <typename T>
GNND_VEC Eight<T> LoadEight(const T* from) {
  Eight<T> value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
GNND_VEC void AddEight(T* to, Eight<T> value) {
  value += LoadEight(to);
  std::memcpy(to, &value, sizeof value);
}

// The sum of the lanes, added by halves.
template <typename T>
GNND_VEC T SumOfEight(Eight<T> v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

}  // namespace gnnd::GNND_SET
