#pragma once

#include <cstdint>

#include "core/kernels/update.h"
#include "core/vec/dispatch.h"

// The optimizer's loops over stretches of the parameter vector, for optimizer.cc alone.

namespace gnnd {

// `count` floats of each vector; the vectors do not overlap.
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
