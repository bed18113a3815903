#include "train/attention_rows.h"

#include "train/attention_simd.h"

namespace gnnd {
namespace {

void AttentionPortable(const AttentionRows<float>& op, AttentionPass pass, uint32_t begin,
                       uint32_t end) {
  RunPass(op, pass, begin, end);
}

}  // namespace

AttentionFunction AttentionVariant([[maybe_unused]] InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx512) return AttentionAvx512;
  if (set == InstructionSet::kAvx2) return AttentionAvx2;
#endif
  return AttentionPortable;
}

void RunAttention(const AttentionRows<float>& op, AttentionPass pass, uint32_t begin,
                  uint32_t end) {
  static const AttentionFunction variant = AttentionVariant(DetectInstructionSet());
  variant(op, pass, begin, end);
}

void RunAttention(const AttentionRows<double>& op, AttentionPass pass, uint32_t begin,
                  uint32_t end) {
  RunPass(op, pass, begin, end);
}

}  // namespace gnnd
