#include "core/kernels/optimizer_loops.h"

// Element-wise operations that round the same everywhere: auto-vectorised code gives the bits of
// the scalar loop.

namespace gnnd::GNND_SET {
namespace {

void Adam(const StepConstants& given, const StepStretch& stretch) {
  const StepConstants k = given;
  const float* __restrict gradients = stretch.gradient;
  const float* __restrict parameters = stretch.parameters;
  const float* __restrict memory1 = stretch.memory1;
  const float* __restrict memory2 = stretch.memory2;
  float* __restrict next_parameters = stretch.next_parameters;
  float* __restrict next_memory1 = stretch.next_memory1;
  float* __restrict next_memory2 = stretch.next_memory2;
  for (uint64_t i = 0; i < stretch.count; ++i) {
    const UpdatedFloat next = AdamUpdate(k, gradients[i], {parameters[i], memory1[i], memory2[i]});
    next_parameters[i] = next.parameter;
    next_memory1[i] = next.memory1;
    next_memory2[i] = next.memory2;
  }
}

void Sgd(const StepConstants& given, const StepStretch& stretch) {
  const StepConstants k = given;
  const float* __restrict gradients = stretch.gradient;
  const float* __restrict parameters = stretch.parameters;
  const float* __restrict memory1 = stretch.memory1;
  float* __restrict next_parameters = stretch.next_parameters;
  float* __restrict next_memory1 = stretch.next_memory1;
  float* __restrict next_memory2 = stretch.next_memory2;
  for (uint64_t i = 0; i < stretch.count; ++i) {
    const UpdatedFloat next = SgdUpdate(k, gradients[i], {parameters[i], memory1[i], 0.0F});
    next_parameters[i] = next.parameter;
    next_memory1[i] = next.memory1;
    next_memory2[i] = 0.0F;
  }
}

}  // namespace

const OptimizerLoops kOptimizerLoops = {Adam, Sgd};

}  // namespace gnnd::GNND_SET
