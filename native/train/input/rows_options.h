#pragma once

#include <cstdint>
#include <string>

#include "core/device/device.h"
#include "core/executor/prediction_place.h"
#include "core/feature/row_reader.h"
#include "core/kernels/optimizer.h"
#include "core/model/model_spec.h"
#include "train/tasks/node_targets.h"
#include "train/tasks/row_targets.h"

namespace gnnd {

// The rows that a device holds if it is the rows' tier; the others come from the host's memory.
enum class DeviceSplits : uint32_t { kAll = 0, kTrain = 1 };

// Everything that decides a Trainer's computation on rows of a propagation.
struct RowsOptions {
  ModelSpec model;
  uint64_t random_seed = 0;
  OptimizerOptions optimizer;
  uint32_t threads = 1;  // decides no bit
  std::string folder;    // folder of the propagation's row files
  uint64_t train = 0;    // numbers of rows of each split, which lie one after the other
  uint64_t val = 0;
  uint64_t test = 0;
  Task task = Task::kClassification;
  Metric decides = Metric::kAccuracy;  // of evaluations, as the next (NodeTargets)
  bool ranks = false;
  ClassWeighting weighting;
  uint32_t batch_size = 1;
  uint32_t chunk = 1;  // rows that stay together in the epoch's order (core/draw/row_order.h)

  // Inference: evaluations of validation rows predict these instead and need no label; test rows
  // are not evaluated.
  PredictionPlace predictions;
  RowsToPredict predicted;
  RowTier tier = RowTier::kHost;  // decides no bit
  DeviceSplits device_splits = DeviceSplits::kAll;
  // A device with memory of its own, for batches, evaluations (not predictions) and, with
  // RowTier::kDevice, the rows; not for steps. Borrowed, must outlive the TorchWork; null: the CPU.
  const Device* device = nullptr;
};

}  // namespace gnnd
