#include "core/kernels/attention.h"

namespace gnnd {
namespace {

const AttentionLoops& Best() {
  static const AttentionLoops& best = AttentionFor(DetectInstructionSet());
  return best;
}

}  // namespace

const AttentionLoops& AttentionFor(InstructionSet set) {
  return GNND_LOOPS_OF(set, kAttentionLoops);
}

void RunAttention(const AttentionRows<float>& op, AttentionPass pass, uint32_t begin,
                  uint32_t end) {
  Best().of_float(op, pass, begin, end);
}

void RunAttention(const AttentionRows<double>& op, AttentionPass pass, uint32_t begin,
                  uint32_t end) {
  Best().of_double(op, pass, begin, end);
}

}  // namespace gnnd
