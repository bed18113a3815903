#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/hd.h"

// The update of one parameter, written once for the processor's loops and the devices' kernels:
// every operation is rounded by itself, so all give the same bits.

namespace gnnd {

// Constants of one step, rounded to float32 once, as torch does before its vector loops.
struct StepConstants {
  float seeds;
  float clip;  // 1 if the gradient is within the bound
  float beta2;
  float one_minus_beta1;
  float one_minus_beta2;
  float negative_step_size;
  float root_correction2;
  float epsilon;
  float weight_decay;  // added to the gradient
  float keep;          // AdamW: factor of decoupled decay
  float momentum;
  bool nesterov;
};

// A parameter and its two floats of the optimizer's memory.
struct UpdatedFloat {
  float parameter;
  float memory1;
  float memory2;
};

// `gradient_sum` is a sum over seeds. Also used for AdamW.
GNND_HD UpdatedFloat AdamUpdate(const StepConstants& k, float gradient_sum, UpdatedFloat old) {
  const float parameter = k.keep * old.parameter;
  const float gradient = k.clip * (gradient_sum / k.seeds) + k.weight_decay * parameter;
  const float next1 = old.memory1 + k.one_minus_beta1 * (gradient - old.memory1);
  const float next2 = old.memory2 * k.beta2 + k.one_minus_beta2 * gradient * gradient;
  const float denominator = std::sqrt(next2) / k.root_correction2 + k.epsilon;
  return {parameter + k.negative_step_size * (next1 / denominator), next1, next2};
}

GNND_HD UpdatedFloat SgdUpdate(const StepConstants& k, float gradient_sum, UpdatedFloat old) {
  const float gradient = k.clip * (gradient_sum / k.seeds) + k.weight_decay * old.parameter;
  const float next = k.momentum * old.memory1 + gradient;
  const float direction = k.nesterov ? gradient + k.momentum * next : next;
  return {old.parameter + k.negative_step_size * direction, next, 0.0F};
}

// The combined effect of several updates in one direction, rounded to float32 once.
struct PathConstants {
  float keep;           // factor of decoupled decay
  float negative_rate;  // sum of the learning rates, each decayed by the updates after it
  float root_correction2;
  float epsilon;
};

GNND_HD float PredictedByAdam(const PathConstants& k, float parameter, float memory1,
                              float memory2) {
  const float denominator = std::sqrt(memory2) / k.root_correction2 + k.epsilon;
  const float direction = memory1 / denominator;
  return k.keep * parameter + k.negative_rate * direction;
}
GNND_HD float PredictedBySgd(const PathConstants& k, float parameter, float memory1) {
  return k.keep * parameter + k.negative_rate * memory1;
}

inline constexpr double kClipEpsilon = 1e-6;  // as in torch.nn.utils.clip_grad_norm_

// The factor of the mean gradient that keeps its norm within the bound; `squares` is the sum of its
// squares, added in order in float64.
GNND_HD double ClipFactorOf(double clip_norm, double squares) {
  const double factor = clip_norm / (std::sqrt(squares) + kClipEpsilon);
  return 1.0 < factor ? 1.0 : factor;  // keeps a NaN
}

}  // namespace gnnd
