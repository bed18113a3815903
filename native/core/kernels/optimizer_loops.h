#pragma once

#include <cstdint>

#include "core/vec/dispatch.h"

// The optimizer's loops over stretches of the parameter vector, for optimizer.cc alone.

namespace gnnd {

// Constants of one step, rounded to float32 once, as torch does before its vector loops.
struct StepConstants {
  float seeds;
  float clip;  // 1 where the gradient is short enough
  float beta2;
  float one_minus_beta1;
  float one_minus_beta2;
  float negative_step_size;
  float root_correction2;
  float epsilon;
  float weight_decay;  // added to the gradient
  float keep;          // AdamW: what decoupled decay leaves of a parameter
  float momentum;
  bool nesterov;
};

// `count` floats of each vector; none overlap.
struct StepStretch {
  const float* gradient;  // a sum over seeds
  const float* parameters;
  const float* memory1;
  const float* memory2;
  float* next_parameters;
  float* next_memory1;
  float* next_memory2;
  uint64_t count;
};

struct OptimizerLoops {
  void (*adam)(const StepConstants& constants, const StepStretch& stretch);  // AdamW, too
  void (*sgd)(const StepConstants& constants, const StepStretch& stretch);
};
GNND_DECLARE_LOOPS(OptimizerLoops, kOptimizerLoops);

}  // namespace gnnd
