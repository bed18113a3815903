#pragma once

#include <cstdint>

namespace gnnd {

// Why a batch's content is what it is: all that a sample depends on beside the dataset and sampler.
struct BatchKey {
  uint64_t random_seed;
  uint32_t epoch;
  uint32_t batch;  // index within the epoch
};

}  // namespace gnnd
