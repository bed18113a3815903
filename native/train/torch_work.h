#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "core/base/status.h"
#include "core/executor/train_work.h"
#include "core/model/model_spec.h"
#include "train/logits_consumer.h"
#include "train/train_options.h"

namespace gnnd {

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
  Status Extract(const Sample& sample, uint32_t buffer, ExtractReport* report) override;
  Status ComputeGradient(const Sample& sample, uint32_t buffer, std::span<const float> parameters,
                         std::span<float> gradient, BatchReport* report) override;
  void Apply(std::span<const std::span<const float>> gradients, uint64_t num_seeds, uint64_t step,
             std::span<const float> parameters_in, std::span<const float> optimizer_in,
             std::span<float> parameters_out, std::span<float> optimizer_out) override;
  void PredictParameters(uint64_t version, uint64_t lag, std::span<const float> parameters,
                         std::span<const float> optimizer, std::span<float> predicted) override;
  Result<EvalShape> PlanEvaluation(EvalNodes nodes, const Alive& alive) override;
  Status EvaluateChunk(const EvalTask& task, std::span<const float> parameters, const Alive& alive,
                       EvalResult* result) override;
  void EndEvaluation(const EvalRun& run) override;
  Sha256Digest DigestOf(std::span<const float> parameters) override;

  // Logits of `nodes` (ascending, each once) with full neighbourhoods and no dropout, in order and
  // in parts. kInvalidArgument for nodes in another order or not in the
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
