#include "core/batch/epoch_name.h"

#include <doctest/doctest.h>

namespace gnnd {

TEST_CASE("epochs that are none of the job's are not called by their numbers") {
  CHECK(EpochName(0) == "epoch 0");
  CHECK(EpochName(kEvaluationEpoch - 1) == "epoch 12582911");
  CHECK(EpochName(kTrialEpoch) == "the trial that comes before epoch 0");
  CHECK(EpochName(kFirstPresampleEpoch) == "the pre-sampling");
  CHECK(EpochName(kFirstPresampleEpoch - 20) == "the pre-sampling");
  CHECK(EpochName(kEvaluationEpoch) == "a sampled evaluation");
  CHECK(EpochName(kEvaluationEpoch + 1) == "a sampled evaluation");
}

}  // namespace gnnd
