#pragma once

#include <cstdint>
#include <string>

#include "core/draw/purpose.h"

namespace gnnd {

// Names an epoch for people by its number in a batch key, reserved numbers included.
inline std::string EpochName(uint32_t epoch) {
  if (epoch < kEvaluationEpoch) return "epoch " + std::to_string(epoch);
  if (epoch == kTrialEpoch) return "the trial that comes before epoch 0";
  return epoch < kRowOrderEpoch ? "a sampled evaluation" : "the pre-sampling";
}

}  // namespace gnnd
