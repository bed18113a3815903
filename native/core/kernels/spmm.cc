#include "core/kernels/spmm.h"

namespace gnnd {
namespace {

const SpmmLoops& Best() {
  static const SpmmLoops& best = SpmmFor(DetectInstructionSet());
  return best;
}

}  // namespace

const SpmmLoops& SpmmFor(InstructionSet set) { return GNND_LOOPS_OF(set, kSpmmLoops); }

void RunSpmm(const SpmmFloat& op, uint32_t begin, uint32_t end) { Best().of_float(op, begin, end); }

void RunSpmm(const SpmmHalf& op, uint32_t begin, uint32_t end) { Best().of_half(op, begin, end); }

void RunSpmm(const SpmmDouble& op, uint32_t begin, uint32_t end) {
  Best().of_double(op, begin, end);
}

void RunSpmm(const SpmmBfloat16& op, uint32_t begin, uint32_t end) {
  Best().of_bfloat16(op, begin, end);
}

void RunSpmm(const SpmmFloatToBfloat16& op, uint32_t begin, uint32_t end) {
  Best().of_float_to_bfloat16(op, begin, end);
}

void RunSpmm(const SpmmHalfToBfloat16& op, uint32_t begin, uint32_t end) {
  Best().of_half_to_bfloat16(op, begin, end);
}

}  // namespace gnnd
