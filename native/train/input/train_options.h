#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/executor/prediction_place.h"
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
#include "train/tasks/node_targets.h"

namespace gnnd {

struct LinkUse;

// The place of the hidden layers' rows in exact evaluation.
struct EvalPlace {
  int fd = -1;  // shared with other Trainers; -1: private memory, made when it is needed
  uint64_t memory_bytes = 0;  // limit of private memory; beyond it a file in `folder`
  std::string folder;         // empty: private memory without a limit
};

// A device with memory of its own (core/device/device.h) that computes gradients: extraction,
// forward, backward and the loss, and also chunks of evaluations if they fit. The optimizer's step
// and predictions of parameters stay on the host's processor, with the same bits. Create refuses
// scripts and devices whose plug-in lacks a kernel (kDeviceUnavailable).
struct DeviceOptions {
  const Device* device = nullptr;  // borrowed, must outlive the TorchWork; null: the CPU
  // Device memory for the hottest rows: as many of hot_order's first as fit; 0 = no cache.
  // TrainOptions::cache_rows, which is for host memory, must be 0.
  uint64_t cache_bytes = 0;
  // Which rows lie on which devices; if it has lines, this device's own rows replace the first
  // cache_bytes. Rows of other devices are read in their memory while `shares` lists their
  // Trainers, and from the host otherwise. Decides no bit.
  RowPlacement placement;
  // Lists the shared memory of Trainers; borrowed; null: no sharing.
  const RowShares* shares = nullptr;
  uint32_t incarnation = 0;  // identifies this Trainer as an owner in `shares`
  // Address at which the device sees host_features (or `features`, if the former is empty), all of
  // which is registered with it (HostRegistration::seen): kernels read cache misses over the bus.
  // Null: not registered; the host gathers and stages misses.
  const std::byte* features_seen = nullptr;
  // Device memory for the input of one part of an exact evaluation's block (device_eval_input.h);
  // 0: chosen from the device's budget. Decides no bit.
  uint64_t eval_part_bytes = 0;
};

// Everything that decides a Trainer's computation. The spans and the topology are borrowed (mapped
// files) and must outlive the TorchWork.
struct TrainOptions {
  ModelSpec model;       // kScript: only the type is read; `script` says the rest
  ScriptOptions script;  // read for kScript only
  uint64_t random_seed = 0;

  OptimizerOptions optimizer;

  DeviceOptions device;
  const TrainDevice* operators = nullptr;  // for tests; null: the processor's
  Precision precision = Precision::kFloat32;
  uint32_t threads = 1;                 // threads of every operator; decides bits only of scripts
  RowTable features;                    // [num_nodes, model.in_dim]
  std::span<const uint32_t> hot_order;  // node of each hot rank; read by Create only
  std::span<const uint32_t> hot_ranks;  // rank of each node, for evaluations on a device; or empty
  // Rows of hot_order to cache; decides no bit. 0 if they lie in history's memory.
  uint64_t cache_rows = 0;
  bool features_on_disk = false;  // the table does not fit the host's memory
  RowTable host_features;         // rows of the first ranks (host_tier.h); may be empty
  NodeTargets targets;            // [num_nodes]

  // Evaluation.
  TopologyView topology;  // with alias tables if `eval_sampler` draws by weight
  // [num_edges] or empty. GraphSAGE and PinSAGE evaluate exactly with means weighted by these,
  // which sampling in proportion to them estimates; other models ignore them. Leave empty if
  // records carry weights only to undo a sampler's bias (LABOR), or visit counts.
  std::span<const float> edge_weights;
  std::span<const int64_t> val_nodes;
  std::span<const int64_t> test_nodes;
  EvalPlace eval_place;  // for exact evaluation; by default private memory without a limit
  // Sampled edges carry shares of a mean (EdgeWeights::kShares): GraphSAGE sums them and does not
  // divide by their sum.
  bool shares = false;
  std::optional<SamplerOptions> eval_sampler;  // for sampled evaluation; none: exact

  // If links are learnt: borrowed. Targets, val_nodes and test_nodes are not read then. Null:
  // nodes.
  const LinkUse* links = nullptr;

  HistoryUse history;  // embeddings that batches keep and read

  // Inference: evaluations of validation nodes predict these nodes instead and need no label; test
  // nodes are not evaluated. Ascending and distinct.
  PredictionPlace predictions;
  std::vector<uint32_t> predicted_nodes;
  bool predicts_all = false;  // whether they are all nodes of the graph

  uint64_t num_nodes() const { return features.num_rows(); }
};

// Errors of TorchWork::Create, besides those of what is learnt. For a script, `model` must already
// be the one in its file.
Status CheckOptions(const TrainOptions& options);
// Errors of targets of nodes.
Status CheckTargets(const TrainOptions& options);

// kInvalidArgument if `node` is not in the graph.
Status CheckInGraph(const TrainOptions& options, int64_t node);

}  // namespace gnnd
