#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/base/status.h"
#include "core/executor/train_work.h"
#include "core/model/model_spec.h"
#include "train/input/train_options.h"
#include "train/ops/operators.h"
#include "train/tasks/eval_targets.h"

namespace gnnd {

// A Trainer's arithmetic on libtorch: models over blocks, cross-entropy, optimizers, exact
// evaluation and prediction. Torch's exceptions end here, with their one line: as
// kInternal, or as kPluginFailed where the model is a user's script.
class TorchWork : public TrainWork {
 public:
  // kInvalidArgument when options contradict each other (sizes, node ids, learning rate),
  // kPluginFailed when a script cannot be loaded or is against its contract,
  // kDatasetCorrupt when a validation or test node has no label of the model.
  // Sets torch's thread counts, which belong to the whole process.
  static Result<std::unique_ptr<TorchWork>> Create(const TrainOptions& options);

  virtual const ParameterManifest& manifest() const = 0;
  // Floats of the optimizer's memory.
  uint64_t optimizer_floats() const { return OptimizerFloats(manifest()); }

  // Logits of `nodes` (ascending, each once) with full neighbourhoods and no dropout, in order and
  // in parts. kInvalidArgument for nodes in another order or not in the
  // graph; kAborted when `alive`, called at least every 100 ms of work, returns false.
  virtual Status Predict(std::span<const float> parameters, std::span<const uint32_t> nodes,
                         const Alive& alive, const LogitsConsumer& consume) = 0;
  // Share of the running prediction that is done, 0 to 1; for its `alive`.
  virtual double predicted() const = 0;

 protected:
  // TrainWork::Apply by a device's operators, on so many threads.
  static void ApplyBy(const Operators& operators, const ParameterManifest& manifest,
                      const OptimizerOptions& options, uint32_t threads, const StepView& step);
};

}  // namespace gnnd
