#pragma once

#include <cstdint>
#include <string>

#include "core/device/device.h"
#include "core/executor/prediction_files.h"
#include "core/feature/row_reader.h"
#include "core/kernels/optimizer.h"
#include "core/model/model_spec.h"
#include "train/tasks/node_targets.h"
#include "train/tasks/row_targets.h"

namespace gnnd {

// What a device holds, where it is the rows' tier; the rest comes from the host's memory.
enum class DeviceSplits : uint32_t { kAll = 0, kTrain = 1 };

// All that decides what a Trainer computes on rows of a propagation.
struct RowsOptions {
  ModelSpec model;
  uint64_t random_seed = 0;
  OptimizerOptions optimizer;
  uint32_t threads = 1;  // decide no bit
  std::string folder;    // of the propagation's row files
  uint64_t train = 0;    // rows of each split, one after the other
  uint64_t val = 0;
  uint64_t test = 0;
  Task task = Task::kClassification;
  uint32_t ranked_columns = 0;  // NodeTargets'
  ClassWeighting weighting;
  uint32_t batch_size = 1;
  uint32_t chunk = 1;  // rows that stay together in the epoch's order (core/draw/row_order.h)

  // Inference: evaluations of validation rows predict in place of them, and need no label; there
  // are none of test rows.
  PredictionPlace predictions;
  RowsToPredict predicted;
  RowTier tier = RowTier::kHost;  // decides no bit
  DeviceSplits device_splits = DeviceSplits::kAll;
  // With memory of its own: batches, evaluations but predictions, and of RowTier::kDevice the rows.
  // Steps stay with the processor. Borrowed, until after the TorchWork; null: the CPU.
  const Device* device = nullptr;
};

}  // namespace gnnd
