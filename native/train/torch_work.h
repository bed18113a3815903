#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "core/base/status.h"
#include "core/dataset/row_table.h"
#include "core/dataset/topology_view.h"
#include "core/model/model_spec.h"
#include "core/run/train_work.h"
#include "train/logits_consumer.h"
#include "train/optimizer.h"
#include "train/script_options.h"

namespace gnnd {

// All that decides what a Trainer computes. The spans and the topology are borrowed (mapped files)
// and must outlive the TorchWork.
struct TrainOptions {
  ModelSpec model;       // kScript: the type alone is read, and `script` says the rest
  ScriptOptions script;  // read for kScript only
  uint64_t random_seed = 0;

  OptimizerOptions optimizer;

  uint32_t threads = 1;                 // of every operator; part of what decides bits
  RowTable features;                    // [num_nodes, model.in_dim]
  std::span<const uint32_t> hot_order;  // node of each hot rank; read by Create only
  uint64_t cache_rows = 0;              // rows of hot_order to cache; decides no bit
  bool features_on_disk = false;        // the table does not fit the host's memory
  std::span<const int32_t> labels;      // [num_nodes], -1 = none

  // Exact evaluation.
  TopologyView topology;
  // [num_edges] or empty. GraphSAGE and PinSAGE evaluate with means weighted by them, which is what
  // sampling in proportion to them estimates; other models take no notice. Give none where records
  // only carry weights that undo a sampler's bias (LABOR), or visit counts.
  std::span<const float> edge_weights;
  std::span<const int64_t> val_nodes;
  std::span<const int64_t> test_nodes;
  uint64_t eval_memory_bytes = 0;  // bound on evaluation's memory; 0 = 1 GiB
};

// A Trainer's arithmetic on libtorch: models over blocks, cross-entropy, optimizers, exact
// evaluation and prediction. Torch's exceptions end here, with their one line: as
// kInternal, or as kPluginFailed where the model is a user's script.
class TorchWork final : public TrainWork {
 public:
  // kInvalidArgument when options contradict each other (sizes, node ids, learning rate),
  // kPluginFailed when a script cannot be loaded or is against its contract,
  // kDatasetCorrupt when a validation or test node has no label of the model.
  // Sets torch's thread counts, which belong to the whole process.
  static Result<std::unique_ptr<TorchWork>> Create(const TrainOptions& options);
  ~TorchWork() override;

  const ParameterManifest& manifest() const;
  // Floats of the optimizer's memory.
  uint64_t optimizer_floats() const;

  void InitParameters(std::span<float> parameters) override;
  Status Extract(const RecordView& record, uint32_t buffer, ExtractReport* report) override;
  Status ComputeGradient(const RecordView& record, uint32_t buffer,
                         std::span<const float> parameters, std::span<float> gradient,
                         BatchReport* report) override;
  void Apply(std::span<const std::span<const float>> gradients, uint64_t num_seeds, uint64_t step,
             std::span<const float> parameters_in, std::span<const float> optimizer_in,
             std::span<float> parameters_out, std::span<float> optimizer_out) override;
  void PredictParameters(uint64_t version, uint64_t lag, std::span<const float> parameters,
                         std::span<const float> optimizer, std::span<float> predicted) override;
  Status Evaluate(std::span<const float> parameters, const std::function<bool()>& alive,
                  EvalReport* report) override;

  // Logits of `nodes` (ascending, each once) with full neighbourhoods and no dropout, in order and
  // in parts that keep eval_memory_bytes. kInvalidArgument for nodes in another order or not in the
  // graph; kAborted when `alive`, called at least every 100 ms of work, returns false.
  Status Predict(std::span<const float> parameters, std::span<const uint32_t> nodes,
                 const std::function<bool()>& alive, const LogitsConsumer& consume);
  // Share of the running prediction that is done, 0 to 1; for its `alive`.
  double predicted() const;

 private:
  class Impl;
  explicit TorchWork(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace gnnd
