#include "core/kernels/spmm.h"

namespace gnnd {
namespace {

const SpmmLoops& Best() {
  static const SpmmLoops& best = SpmmFor(DetectInstructionSet());
  return best;
}

}  // namespace

const SpmmLoops& SpmmFor(InstructionSet set) { return GNND_LOOPS_OF(set, kSpmmLoops); }

void RunSpmm(const Spmm<float>& op, uint32_t begin, uint32_t end) {
  Best().of_float(op, begin, end);
}

void RunSpmm(const Spmm<float, Half>& op, uint32_t begin, uint32_t end) {
  Best().of_half(op, begin, end);
}

void RunSpmm(const Spmm<double>& op, uint32_t begin, uint32_t end) {
  Best().of_double(op, begin, end);
}

}  // namespace gnnd
