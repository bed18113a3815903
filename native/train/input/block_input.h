#pragma once

#include <cstdint>

#include "core/feature/feature_store.h"
#include "train/input/train_options.h"

namespace gnnd {

// The input of a Trainer over blocks, which its parts borrow.
struct BlockInput {
  TrainOptions options;
  FeatureStore store;
  uint64_t cache_fill_ns = 0;  // time that filling the cache took; 0 without a cache
};

}  // namespace gnnd
