#pragma once

#include <cstdint>

// Which vector instructions a kernel may use. Kernels are compiled once per set (files *_avx2.cc,
// *_avx512.cc) and chosen at run time; all of them give the same bits.

namespace gnnd {

// Ordered: a processor that has one has all before it.
enum class InstructionSet : uint32_t {
  kScalar = 0,  // nothing beyond the compiler's baseline
  kAvx2 = 1,    // AVX2, FMA, BMI2, F16C
  kAvx512 = 2,  // AVX-512 F, BW, DQ, VL
};

// The best set that this processor and its operating system support.
InstructionSet DetectInstructionSet();

// "scalar", "avx2" or "avx512".
const char* NameOf(InstructionSet set);

}  // namespace gnnd
