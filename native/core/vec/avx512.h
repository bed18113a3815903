#pragma once

#include <immintrin.h>

// AVX-512 F, BW, DQ, VL: one register for sixteen lanes, and registers for masks. See vec.h.

// GCC 12 warns of the deliberately undefined operand inside its own intrinsics.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#define GNND_PART_LANES 16
#include "core/vec/lanes.h"

namespace gnnd::avx512 {

// Vectors Lanes16<float> that a loop may hold at once: half of the registers.
constexpr uint32_t kHeldVectors = 16;

GNND_VEC __m512i Register(const U32x16& a) { return reinterpret_cast<__m512i>(a.part[0]); }
GNND_VEC U32x16 Lanes(__m512i a) { return {{reinterpret_cast<U32x16::Part>(a)}}; }
GNND_VEC F32x16 Lanes(__m512 a) { return {{reinterpret_cast<F32x16::Part>(a)}}; }
GNND_VEC __m512 Register(const F32x16& a) { return reinterpret_cast<__m512>(a.part[0]); }

struct Mask16 {
  __mmask16 bits;
};

GNND_VEC Mask16 NoLanes() { return {0}; }
GNND_VEC Mask16 LanesOf(uint32_t bits) { return {static_cast<__mmask16>(bits)}; }
GNND_VEC uint32_t Bits(Mask16 mask) { return mask.bits; }
GNND_VEC Mask16 operator|(Mask16 a, Mask16 b) { return LanesOf(a.bits | b.bits); }
GNND_VEC Mask16 operator&(Mask16 a, Mask16 b) { return LanesOf(a.bits & b.bits); }
GNND_VEC Mask16 Equal(const U32x16& a, const U32x16& b) {
  return {_mm512_cmpeq_epi32_mask(Register(a), Register(b))};
}
GNND_VEC Mask16 Below(const U32x16& a, const U32x16& b) {
  return {_mm512_cmplt_epu32_mask(Register(a), Register(b))};
}
GNND_VEC Mask16 NotAtMostZero(const F32x16& a) {
  return {_mm512_cmp_ps_mask(Register(a), _mm512_setzero_ps(), _CMP_NLE_UQ)};
}
GNND_VEC U32x16 Select(Mask16 mask, const U32x16& yes, const U32x16& no) {
  return Lanes(_mm512_mask_mov_epi32(Register(no), mask.bits, Register(yes)));
}
GNND_VEC F32x16 Keep(Mask16 mask, const F32x16& a) {
  return Lanes(_mm512_maskz_mov_ps(mask.bits, Register(a)));
}

// Writes the masked lanes one behind the other, touching up to 16 elements; returns their number.
GNND_VEC uint32_t CompressStore(uint32_t* to, Mask16 mask, const U32x16& a) {
  // Compresses in a register first, because compressing to memory is slow on some processors.
  _mm512_storeu_si512(to, _mm512_maskz_compress_epi32(mask.bits, Register(a)));
  return static_cast<uint32_t>(_mm_popcnt_u32(mask.bits));
}

// The first `count` lanes, 1 to 16.
struct Tail {
  uint32_t count;
  __mmask16 bits;
};
GNND_VEC Tail TailOf(uint32_t count) { return {count, static_cast<__mmask16>((1U << count) - 1U)}; }
GNND_VEC Mask16 LanesOf(Tail tail) { return {tail.bits}; }
GNND_VEC U32x16 Load(const uint32_t* from, Tail tail) {
  return Lanes(_mm512_maskz_loadu_epi32(tail.bits, from));
}
GNND_VEC F32x16 Load(const float* from, Tail tail) {
  return Lanes(_mm512_maskz_loadu_ps(tail.bits, from));
}
GNND_VEC void Store(float* to, const F32x16& a, Tail tail) {
  _mm512_mask_storeu_ps(to, tail.bits, Register(a));
}

// Masked, because GCC 12 warns of its own unmasked form.
GNND_VEC F32x16 Load(const Half* from) {
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return Lanes(_mm512_maskz_cvtph_ps(0xFFFF, halves));
}
GNND_VEC F32x16 Load(const Half* from, Tail tail) {
  const __m256i halves = _mm256_maskz_loadu_epi16(tail.bits, from);
  return Lanes(_mm512_maskz_cvtph_ps(tail.bits, halves));
}

GNND_VEC F32x16 Load(const Bfloat16* from, Tail tail) {
  const __m512i bits = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(tail.bits, from));
  return Lanes(_mm512_castsi512_ps(_mm512_slli_epi32(bits, 16)));
}
GNND_VEC void Store(Bfloat16* to, const F32x16& a, Tail tail) {
  _mm256_mask_storeu_epi16(to, tail.bits, reinterpret_cast<__m256i>(NarrowPart(a.part[0])));
}

// Sixteen 32-bit numbers laid out for the multiplier: those at even and those at odd places, in the
// low halves of 64-bit lanes. The high halves are never read.
typedef uint64_t WidePart __attribute__((vector_size(64)));
constexpr uint32_t kWideLanes = 8;  // in a WidePart
constexpr uint32_t kWideParts = 2;
constexpr uint32_t kWideUnroll = 2;
struct Wide {
  WidePart part[kWideParts];
};
using WideProduct = WidePart;

GNND_VEC WidePart WideOf(uint32_t value) { return WidePart{} + value; }
GNND_VEC WidePart WideLaneNumbers() { return WidePart{0, 1, 2, 3, 4, 5, 6, 7}; }
GNND_VEC WideProduct Multiply(WidePart a, WidePart b) {
  const __m512i product =
      _mm512_mul_epu32(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b));
  return reinterpret_cast<WidePart>(product);
}
GNND_VEC WidePart HighOf(WideProduct product) { return product >> 32; }
GNND_VEC WidePart LowOf(WideProduct product) { return product; }
GNND_VEC WidePart Xor3(WidePart a, WidePart b, WidePart c) {
  return reinterpret_cast<WidePart>(_mm512_ternarylogic_epi64(reinterpret_cast<__m512i>(a),
                                                              reinterpret_cast<__m512i>(b),
                                                              reinterpret_cast<__m512i>(c), 0x96));
}
// Bit i: lane i is not below the bound.
GNND_VEC uint32_t NotBelowBits(WidePart a, uint32_t bound) {
  const WidePart low = a & 0xFFFFFFFFU;
  return _mm512_cmpge_epu64_mask(reinterpret_cast<__m512i>(low),
                                 _mm512_set1_epi64(static_cast<int64_t>(bound)));
}

GNND_VEC Wide Widen(const U32x16& a) {
  const auto lanes = reinterpret_cast<WidePart>(a.part[0]);
  return {{lanes, lanes >> 32}};
}
// Takes even places from one vector, odd places from the other.
GNND_VEC U32x16 Interleave(WidePart even, WidePart odd) {
  return Lanes(_mm512_mask_blend_epi32(0xAAAA, reinterpret_cast<__m512i>(even),
                                       reinterpret_cast<__m512i>(odd)));
}
GNND_VEC U32x16 Narrow(const Wide& a) { return Interleave(a.part[0], a.part[1] << 32); }
// The high 32 bits of the products.
GNND_VEC U32x16 MultiplyHigh(const Wide& a, const U32x16& b) {
  const Wide wide = Widen(b);
  return Interleave(Multiply(a.part[0], wide.part[0]) >> 32, Multiply(a.part[1], wide.part[1]));
}

}  // namespace gnnd::avx512
