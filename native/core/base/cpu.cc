#include "core/base/cpu.h"

#include <algorithm>

namespace gnnd {

std::vector<InstructionSet> AvailableInstructionSets() {
  std::vector<InstructionSet> sets = {InstructionSet::kPlain};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c")) {
    sets.push_back(InstructionSet::kAvx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      sets.push_back(InstructionSet::kAvx512);
    }
  }
#elif defined(__aarch64__)
  sets.push_back(InstructionSet::kNeon);
#endif
  return sets;
}

InstructionSet DetectInstructionSet() {
  static const InstructionSet best = AvailableInstructionSets().back();
  return best;
}

bool IsAvailable(InstructionSet set) {
  const std::vector<InstructionSet> sets = AvailableInstructionSets();
  return std::find(sets.begin(), sets.end(), set) != sets.end();
}

const char* NameOf(InstructionSet set) {
  constexpr const char* kNames[] = {"plain", "avx2", "avx512", "neon"};
  return kNames[static_cast<uint32_t>(set)];
}

}  // namespace gnnd
