#pragma once

#include <cstdint>

namespace gnnd {

// Everything that a sample depends on, besides the dataset and the sampler.
struct BatchKey {
  uint64_t random_seed;
  uint32_t epoch;
  uint32_t batch;  // index within the epoch
};

}  // namespace gnnd
