#include "core/base/cpu.h"

namespace gnnd {

InstructionSet DetectInstructionSet() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("bmi2") || !__builtin_cpu_supports("f16c")) {
    return InstructionSet::kScalar;
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return InstructionSet::kAvx512;
  }
  return InstructionSet::kAvx2;
#else
  return InstructionSet::kScalar;
#endif
}

const char* NameOf(InstructionSet set) {
  switch (set) {
    case InstructionSet::kScalar:
      return "scalar";
    case InstructionSet::kAvx2:
      return "avx2";
    case InstructionSet::kAvx512:
      return "avx512";
  }
  return "unknown";
}

}  // namespace gnnd
