#pragma once

#include <immintrin.h>

// AVX2, FMA, BMI2, F16C: two registers for sixteen lanes. See vec.h.

#define GNND_PART_LANES 8
#include "core/vec/lane_masks.h"

namespace gnnd::avx2 {

// Vectors Lanes16<float> that a loop may hold at once: half of the registers, the rest is for
// terms, weight and mask.
constexpr uint32_t kHeldVectors = 4;

GNND_VEC __m256i Register(U32x16::Part a) { return reinterpret_cast<__m256i>(a); }
GNND_VEC U32x16::Part Lanes(__m256i a) { return reinterpret_cast<U32x16::Part>(a); }

GNND_VEC uint32_t Bits(const Mask16& mask) {
  uint32_t bits = 0;
  GNND_PARTS {
    const __m256 lanes = _mm256_castsi256_ps(Register(mask.part[p]));
    bits |= static_cast<uint32_t>(_mm256_movemask_ps(lanes)) << p * kPartLanes;
  }
  return bits;
}

// Writes the masked lanes one behind the other, touching up to 16 elements; returns their number.
GNND_VEC uint32_t CompressStore(uint32_t* to, const Mask16& mask, const U32x16& a) {
  constexpr uint64_t kLanesInOrder = 0x0706050403020100;
  const uint32_t bits = Bits(mask);
  uint32_t count = 0;
  GNND_PARTS {
    const uint32_t mine = bits >> p * kPartLanes & 0xFF;
    const uint64_t bytes = _pdep_u64(mine, 0x0101010101010101) * 0xFF;
    const auto order = static_cast<int64_t>(_pext_u64(kLanesInOrder, bytes));
    const __m256i places = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(order));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + count),
                        _mm256_permutevar8x32_epi32(Register(a.part[p]), places));
    count += static_cast<uint32_t>(_mm_popcnt_u32(mine));
  }
  return count;
}

// The first `count` lanes, 1 to 16.
struct Tail {
  Mask16 mask;
  uint32_t count;
};
GNND_VEC Tail TailOf(uint32_t count) {
  Tail tail;
  tail.count = count;
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  GNND_PARTS {
    const auto left = static_cast<int>(count) - static_cast<int>(p * kPartLanes);
    tail.mask.part[p] = Lanes(_mm256_cmpgt_epi32(_mm256_set1_epi32(left), lane));
  }
  return tail;
}
GNND_VEC Mask16 LanesOf(const Tail& tail) { return tail.mask; }
// Masked loads and stores are used only where a register is neither full nor empty: they are slow
// on some processors, and the case stays the same through a loop.
GNND_VEC bool IsFull(const Tail& tail, uint32_t p) { return tail.count >= (p + 1) * kPartLanes; }
GNND_VEC bool IsEmpty(const Tail& tail, uint32_t p) { return tail.count <= p * kPartLanes; }
GNND_VEC U32x16 Load(const uint32_t* from, const Tail& tail) {
  U32x16 lanes{};
  GNND_PARTS {
    const auto* at = reinterpret_cast<const int*>(from + p * kPartLanes);
    if (IsFull(tail, p)) {
      lanes.part[p] = Lanes(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
    } else if (!IsEmpty(tail, p)) {
      lanes.part[p] = Lanes(_mm256_maskload_epi32(at, Register(tail.mask.part[p])));
    }
  }
  return lanes;
}
GNND_VEC F32x16 Load(const float* from, const Tail& tail) {
  F32x16 lanes{};
  GNND_PARTS {
    const float* at = from + p * kPartLanes;
    if (IsFull(tail, p)) {
      lanes.part[p] = reinterpret_cast<F32x16::Part>(_mm256_loadu_ps(at));
    } else if (!IsEmpty(tail, p)) {
      const __m256i mask = Register(tail.mask.part[p]);
      lanes.part[p] = reinterpret_cast<F32x16::Part>(_mm256_maskload_ps(at, mask));
    }
  }
  return lanes;
}
GNND_VEC void Store(float* to, const F32x16& a, const Tail& tail) {
  GNND_PARTS {
    const auto lanes = reinterpret_cast<__m256>(a.part[p]);
    if (IsFull(tail, p)) {
      _mm256_storeu_ps(to + p * kPartLanes, lanes);
    } else if (!IsEmpty(tail, p)) {
      _mm256_maskstore_ps(to + p * kPartLanes, Register(tail.mask.part[p]), lanes);
    }
  }
}

GNND_VEC F32x16 Load(const Half* from) {
  F32x16 lanes;
  GNND_PARTS {
    const auto* at = reinterpret_cast<const __m128i*>(from + p * kPartLanes);
    lanes.part[p] = reinterpret_cast<F32x16::Part>(_mm256_cvtph_ps(_mm_loadu_si128(at)));
  }
  return lanes;
}
// There is no masked load of 16-bit lanes.
GNND_VEC F32x16 Load(const Half* from, const Tail& tail) {
  F32x16 lanes{};
  GNND_PARTS {
    const Half* at = from + p * kPartLanes;
    __m128i halves = _mm_setzero_si128();
    if (IsFull(tail, p)) {
      halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    } else if (!IsEmpty(tail, p)) {
      std::memcpy(&halves, at, (tail.count - p * kPartLanes) * sizeof(Half));
    }
    lanes.part[p] = reinterpret_cast<F32x16::Part>(_mm256_cvtph_ps(halves));
  }
  return lanes;
}

// Sixteen 32-bit numbers laid out for the multiplier: for each register, the numbers at even and
// those at odd places, in the low halves of 64-bit lanes. The high halves are never read.
typedef uint64_t WidePart __attribute__((vector_size(32)));
constexpr uint32_t kWideLanes = 4;  // in a WidePart
constexpr uint32_t kWideParts = 4;  // register 0 even, odd, register 1 even, odd
constexpr uint32_t kWideUnroll = 4;
struct Wide {
  WidePart part[kWideParts];
};
using WideProduct = WidePart;

GNND_VEC WidePart WideOf(uint32_t value) { return WidePart{} + value; }
GNND_VEC WidePart WideLaneNumbers() { return WidePart{0, 1, 2, 3}; }
GNND_VEC WideProduct Multiply(WidePart a, WidePart b) {
  const __m256i product =
      _mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b));
  return reinterpret_cast<WidePart>(product);
}
GNND_VEC WidePart HighOf(WideProduct product) { return product >> 32; }
GNND_VEC WidePart LowOf(WideProduct product) { return product; }
GNND_VEC WidePart Xor3(WidePart a, WidePart b, WidePart c) { return a ^ b ^ c; }
// Bit i: lane i is not below the bound. Both are below 2^32, so the signed comparison is right.
GNND_VEC uint32_t NotBelowBits(WidePart a, uint32_t bound) {
  const WidePart low = a & 0xFFFFFFFFU;
  const __m256i below = _mm256_cmpgt_epi64(_mm256_set1_epi64x(static_cast<int64_t>(bound)),
                                           reinterpret_cast<__m256i>(low));
  return static_cast<uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(below))) ^ 15U;
}

GNND_VEC Wide Widen(const U32x16& a) {
  Wide wide;
  GNND_PARTS {
    const auto lanes = reinterpret_cast<WidePart>(a.part[p]);
    wide.part[2 * p] = lanes;
    wide.part[2 * p + 1] = lanes >> 32;
  }
  return wide;
}
// Takes even places from one vector, odd places from the other.
GNND_VEC U32x16::Part Interleave(WidePart even, WidePart odd) {
  return Lanes(
      _mm256_blend_epi32(reinterpret_cast<__m256i>(even), reinterpret_cast<__m256i>(odd), 0xAA));
}
GNND_VEC U32x16 Narrow(const Wide& a) {
  U32x16 lanes;
  GNND_PARTS lanes.part[p] = Interleave(a.part[2 * p], a.part[2 * p + 1] << 32);
  return lanes;
}
// The high 32 bits of the products.
GNND_VEC U32x16 MultiplyHigh(const Wide& a, const U32x16& b) {
  const Wide wide = Widen(b);
  U32x16 lanes;
  GNND_PARTS {
    lanes.part[p] = Interleave(Multiply(a.part[2 * p], wide.part[2 * p]) >> 32,
                               Multiply(a.part[2 * p + 1], wide.part[2 * p + 1]));
  }
  return lanes;
}

}  // namespace gnnd::avx2
