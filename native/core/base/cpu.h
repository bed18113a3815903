#pragma once

#include <cstdint>
#include <vector>

// Which vector instructions loops may use. They are compiled once for each set (core/vec/vec.h) and
// chosen at run time; all of them give the same bits.

namespace gnnd {

enum class InstructionSet : uint32_t {
  kPlain = 0,   // nothing beyond the compiler's baseline
  kAvx2 = 1,    // x86-64: AVX2, FMA, BMI2, F16C
  kAvx512 = 2,  // x86-64: AVX-512 F, BW, DQ, VL; has AVX2, too
  kNeon = 3,    // AArch64: its baseline
};

// The best set that this processor and its operating system support.
InstructionSet DetectInstructionSet();

// All that they support, the best one last.
std::vector<InstructionSet> AvailableInstructionSets();

bool IsAvailable(InstructionSet set);

// "plain", "avx2", "avx512" or "neon".
const char* NameOf(InstructionSet set);

}  // namespace gnnd
