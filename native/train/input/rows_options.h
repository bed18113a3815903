#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/device/device.h"
#include "core/executor/prediction_place.h"
#include "core/feature/row_reader.h"
#include "core/graph/topology_view.h"
#include "core/item/links.h"
#include "core/kernels/optimizer.h"
#include "core/model/model_spec.h"
#include "train/tasks/node_targets.h"
#include "train/tasks/row_targets.h"

namespace gnnd {

struct LinkUse;

// What is learnt where items are links of nodes whose rows were propagated: rows are those of all
// nodes then, in the order of ids. All is borrowed.
struct RowLinks {
  LinkOptions batches;                // their links and negatives; no edge is drawn to leave out
  std::span<const uint32_t> train{};  // [batches.count, 2], as LinkSeeds takes them
  TopologyView topology;              // along whose edges features were propagated
  const LinkUse* use = nullptr;
};

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

  // If links are learnt, or asked for: `train`, `val`, `test`, `task` and `chunk` are not read
  // then.
  std::optional<RowLinks> links;
  // The file of rows that Trainers share for what is done with pairs of them (EvalScratch),
  // [nodes, model.out_dim]; -1: private memory.
  int scratch_fd = -1;

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
