#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "core/base/status.h"
#include "core/executor/train_work.h"
#include "core/model/model_spec.h"
#include "train/input/rows_options.h"
#include "train/input/train_options.h"
#include "train/input/typed_rows.h"
#include "train/work/work_parts.h"

namespace gnnd {

// A Trainer's arithmetic on libtorch, put together from parts (work_parts.h): models over blocks or
// rows, losses, optimizers, evaluation and prediction. Torch's exceptions end here, with their
// one line: as kInternal, or as kPluginFailed where the model is a user's script.
class TorchWork final : public TrainWork {
 public:
  // Over blocks (block_work.cc). kInvalidArgument when options contradict each other (sizes, node
  // ids, learning rate), kPluginFailed when a script cannot be loaded or is against its contract,
  // kDatasetCorrupt when a validation or test node has no label of the model.
  // Sets torch's thread counts, which belong to the whole process.
  static Result<std::unique_ptr<TorchWork>> Create(const TrainOptions& options);
  // Over rows of propagated features (rows_work.cc). Samples are of kind kRows: their key alone
  // says which rows. kInvalidArgument when options contradict each other, kDatasetCorrupt when
  // files do not fit them or a row has no label of the model; what DeviceRows::Create answers.
  static Result<std::unique_ptr<TorchWork>> Create(const RowsOptions& options);
  // Over blocks of several types (typed_work.cc). kInvalidArgument when options contradict each
  // other, kDatasetCorrupt when a validation or test node has no label of the model.
  static Result<std::unique_ptr<TorchWork>> Create(const TypedOptions& options);

  explicit TorchWork(WorkParts parts) : parts_(std::move(parts)) {}
  ~TorchWork() override;

  bool keeps_history() const override { return parts_.training->keeps_history(); }
  Status BringHistoryTo(const BatchPoint& point) override;
  void InitParameters(std::span<float> parameters) override { parts_.init(parameters); }
  Status Extract(const Sample& sample, uint32_t buffer, ExtractReport* report) override;
  Status ComputeGradient(const Sample& sample, uint32_t buffer, const ParametersView& parameters,
                         std::span<float> gradient, BatchReport* report) override;
  void Apply(const StepView& step) override;
  void PredictParameters(uint64_t version, uint64_t lag, std::span<const float> parameters,
                         std::span<const float> optimizer, std::span<float> predicted) override;
  Result<EvalShape> PlanEvaluation(EvalNodes nodes, const Alive& alive) override;
  Status EvaluateChunk(const EvalTask& task, const ParametersView& parameters, const Alive& alive,
                       EvalResult* result) override;
  Status Reduce(const ReduceTask& task, const Alive& alive) override;
  Judgement Judge(const EvalResult& whole, std::span<std::byte> kept) const override;
  void EndEvaluation(const EvalRun&) override { parts_.evaluation->End(); }
  Sha256Digest DigestOf(std::span<const float> parameters) override;

  const ParameterManifest& manifest() const { return parts_.manifest; }
  // Floats of the optimizer's memory.
  uint64_t optimizer_floats() const { return OptimizerFloats(manifest()); }

  // Logits of `nodes` (ascending, each once) with full neighbourhoods and no dropout, in order and
  // in parts. kInvalidArgument for nodes in another order or not in the
  // graph; kAborted when `alive`, called at least every 100 ms of work, returns false.
  Status Predict(std::span<const float> parameters, std::span<const uint32_t> nodes,
                 const Alive& alive, const LogitsConsumer& consume);
  // Share of the running prediction that is done, 0 to 1; for its `alive`.
  double predicted() const { return parts_.prediction->progress(); }

 private:
  // Runs `body` with the cores of the thread that computes; what is thrown becomes a Status.
  template <typename Body>
  Status Computed(const Body& body);
  template <typename Body>
  Status WithoutGradients(const Body& body);

  WorkParts parts_;
};

}  // namespace gnnd
