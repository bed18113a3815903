#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/executor/prediction_files.h"
#include "core/feature/row_placement.h"
#include "core/graph/row_table.h"
#include "core/graph/topology_view.h"
#include "core/kernels/optimizer.h"
#include "core/ledger/row_shares.h"
#include "core/model/model_spec.h"
#include "core/sample/options.h"
#include "train/layers/history_use.h"
#include "train/layers/script_options.h"
#include "train/ops/device.h"
#include "train/tasks/eval_targets.h"
#include "train/tasks/node_targets.h"

namespace gnnd {

// Where the hidden layers' rows of exact evaluation lie.
struct EvalPlace {
  int fd = -1;  // shared with other Trainers; -1: memory of our own, made when it is needed
  uint64_t memory_bytes = 0;  // of our own at most; beyond it a file in `folder`
  std::string folder;         // empty: memory all the same
};

// A device with memory of its own (core/device/device.h) that gradients are computed on.
// Extraction, forward, backward and the loss run there, and chunks of evaluations, where it has
// room for them; the optimizer's step and predictions of parameters stay on the host's processor,
// with the same bits. Refused by Create, as kDeviceUnavailable: scripts, and devices whose plug-in
// lacks a kernel.
struct DeviceOptions {
  const Device* device = nullptr;  // borrowed, until after the TorchWork; null: the CPU
  // Of device memory for the hottest rows: as many of hot_order's first as fit; 0 = no cache.
  // TrainOptions::cache_rows, which is of host memory, must be 0.
  uint64_t cache_bytes = 0;
  // Which rows lie on which devices; where there are lines, those that are this device's take the
  // place of the first cache_bytes. Others' rows are read in their memory as long as `shares` has
  // their Trainers, and from the host otherwise: decides no bit.
  RowPlacement placement;
  // Where Trainers say what they share; borrowed, null: this one shares nothing and reads no other.
  const RowShares* shares = nullptr;
  uint32_t incarnation = 0;  // by which it is the owner of what it shares
  // Where the device sees host_features (or, where those are empty, `features`), all of which are
  // registered with it (HostRegistration::seen): what misses the cache is read by kernels over the
  // bus. Null: not registered; misses are gathered by the host and staged.
  const std::byte* features_seen = nullptr;
  // Of device memory for what a part of an exact evaluation's block reads (device_eval_input.h); 0:
  // what its budget has for it. Decides no bit.
  uint64_t eval_part_bytes = 0;
};

// All that decides what a Trainer computes. The spans and the topology are borrowed (mapped files)
// and must outlive the TorchWork.
struct TrainOptions {
  ModelSpec model;       // kScript: the type alone is read, and `script` says the rest
  ScriptOptions script;  // read for kScript only
  uint64_t random_seed = 0;

  OptimizerOptions optimizer;

  DeviceOptions device;
  const TrainDevice* operators = nullptr;  // tests: others on the host's memory; null: the CPU's
  Precision precision = Precision::kFloat32;
  uint32_t threads = 1;                 // of every operator; they decide bits of scripts alone
  RowTable features;                    // [num_nodes, model.in_dim]
  std::span<const uint32_t> hot_order;  // node of each hot rank; read by Create only
  std::span<const uint32_t> hot_ranks;  // rank of each node, for evaluations on a device; or empty
  // Rows of hot_order to cache; decides no bit. 0 where they lie in history's memory.
  uint64_t cache_rows = 0;
  bool features_on_disk = false;  // the table does not fit the host's memory
  RowTable host_features;         // rows of the first ranks (host_tier.h); may be empty
  NodeTargets targets;            // [num_nodes]

  // Evaluation.
  TopologyView topology;  // with alias tables where `eval_sampler` draws by weight
  // [num_edges] or empty. GraphSAGE and PinSAGE evaluate exactly with means weighted by them, which
  // is what sampling in proportion to them estimates; other models take no notice. Give none where
  // records only carry weights that undo a sampler's bias (LABOR), or visit counts.
  std::span<const float> edge_weights;
  std::span<const int64_t> val_nodes;
  std::span<const int64_t> test_nodes;
  EvalPlace eval_place;  // of exact evaluation; by default memory of our own of any size
  // Sampled edges carry shares of a mean (EdgeWeights::kShares): GraphSAGE sums them, and does not
  // divide by their sum.
  bool shares = false;
  std::optional<SamplerOptions> eval_sampler;  // of sampled evaluation; none: exact

  HistoryUse history;  // embeddings that batches keep and read

  // Inference: evaluations of validation nodes predict these in place of them, and need no label;
  // there are none of test nodes. Ascending, each once.
  PredictionPlace predictions;
  std::vector<uint32_t> predicted_nodes;
  bool predicts_all = false;  // they are all of the graph's

  uint64_t num_nodes() const { return features.num_rows(); }
};

// As TorchWork::Create; of a script the model is already the one that its file says.
Status CheckOptions(const TrainOptions& options);

// Whether `node` is one; kInvalidArgument.
Status CheckInGraph(const TrainOptions& options, int64_t node);

// What a Trainer evaluates, or predicts, as `nodes`.
EvalTargets TargetsOf(const TrainOptions& options, EvalNodes nodes);

}  // namespace gnnd
