#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/huge_array.h"
#include "core/executor/train_work.h"
#include "core/sample/sampler.h"
#include "train/device/device_extraction.h"
#include "train/device/device_side.h"
#include "train/evaluate/eval_layer.h"
#include "train/layers/script_model.h"
#include "train/ops/workspace.h"
#include "train/tasks/eval_targets.h"

namespace gnnd {

// Evaluation on keyed samples: the nodes form chunks of kEvalChunkSeeds, each a batch with a key
// that no training batch has (kEvaluationEpoch), the same in every run. No dropout, no update.
class SampledEvaluator {
 public:
  // Follows options.eval_sampler. Borrows all but the model; `script` is null for our own models.
  // kInvalidArgument when no record has room for the sampler's draws.
  static Result<std::unique_ptr<SampledEvaluator>> Create(const TrainOptions& options,
                                                          const Model& model, ScriptModel* script);

  EvalShape Plan(EvalNodes nodes) const;
  Status RunChunk(const EvalTask& task, std::span<const at::Tensor> parameters, const Alive& alive,
                  EvalResult* result);

  // From now on forward passes run on a device, in its `memory`, or again on the host. The first
  // chunk is computed once, with any device parameters, so that a Trainer holds from the start
  // about the memory that evaluations take. Borrows all arguments. Throws DeviceError.
  Status UseDevice(const FeatureStore& store, const DeviceSide& side,
                   std::span<const at::Tensor> parameters, Workspace* memory);
  void UseHost() { on_device_.reset(); }

  // As in Evaluator.
  void PredictInto(PredictionFiles* files) { predictions_ = files; }

  uint64_t work_bytes() const { return memory_.reserved_bytes() + sampler_.workspace_bytes(); }

 private:
  SampledEvaluator(const TrainOptions& options, const Model& model, ScriptModel* script,
                   const RecordLayout& layout);
  // Feature rows of these nodes as float32.
  at::Tensor Rows(std::span<const uint32_t> nodes);
  at::Tensor Logits(const Sample& sample, std::span<const at::Tensor> parameters);
  at::Tensor LogitsOfDevice(const Sample& sample, std::span<const at::Tensor> parameters);

  struct OnDevice {
    const FeatureStore& store;
    DeviceReader reader;
    Workspace* memory;
  };

  const TrainOptions& options_;
  Model model_;  // without dropout
  ScriptModel* script_;
  Sampler sampler_;
  HugeArray<std::byte> slot_;
  EvalTargets targets_[2];  // by EvalNodes
  PredictionFiles* predictions_ = nullptr;
  Workspace memory_;
  std::optional<OnDevice> on_device_;
  std::vector<float> logits_;  // logits from a device
};

}  // namespace gnnd
