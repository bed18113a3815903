#include "core/kernels/optimizer_loops.h"

#include <cmath>

// Operations that are rounded alike everywhere, one element beside the other: the compiler's own
// vectors give the bits of the scalar loop.

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
    const float parameter = k.keep * parameters[i];
    const float gradient = k.clip * (gradients[i] / k.seeds) + k.weight_decay * parameter;
    const float next1 = memory1[i] + k.one_minus_beta1 * (gradient - memory1[i]);
    const float next2 = memory2[i] * k.beta2 + k.one_minus_beta2 * gradient * gradient;
    const float denominator = std::sqrt(next2) / k.root_correction2 + k.epsilon;
    next_parameters[i] = parameter + k.negative_step_size * (next1 / denominator);
    next_memory1[i] = next1;
    next_memory2[i] = next2;
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
    const float parameter = parameters[i];
    const float gradient = k.clip * (gradients[i] / k.seeds) + k.weight_decay * parameter;
    const float next = k.momentum * memory1[i] + gradient;
    const float direction = k.nesterov ? gradient + k.momentum * next : next;
    next_parameters[i] = parameter + k.negative_step_size * direction;
    next_memory1[i] = next;
    next_memory2[i] = 0.0F;
  }
}

}  // namespace

const OptimizerLoops kOptimizerLoops = {Adam, Sgd};

}  // namespace gnnd::GNND_SET
