#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/executor/prediction_files.h"
#include "train/input/train_options.h"
#include "train/tasks/eval_targets.h"

namespace gnnd {

// An evaluation's nodes, and the way that their logits go.
class EvalOutcome {
 public:
  EvalOutcome(EvalTargets validation, EvalTargets test)
      : targets_{std::move(validation), std::move(test)} {}
  virtual ~EvalOutcome() = default;

  // Ascending, each once.
  const std::vector<uint32_t>& nodes(EvalNodes which) const { return of(which).once(); }
  bool empty() const { return targets_[0].once().empty() && targets_[1].once().empty(); }
  uint64_t bytes() const { return targets_[0].bytes() + targets_[1].bytes(); }

  // Takes the logits of some of the task's nodes, ascending.
  virtual Status Take(const EvalTask& task, std::span<const uint32_t> nodes,
                      std::span<const float> logits, EvalResult* result) = 0;

 protected:
  const EvalTargets& of(EvalNodes which) const { return targets_[static_cast<uint32_t>(which)]; }

 private:
  EvalTargets targets_[2];  // by EvalNodes
};

// Counts right answers, and the loss of validation nodes. Borrows the options.
class CountedOutcome final : public EvalOutcome {
 public:
  explicit CountedOutcome(const TrainOptions& options)
      : EvalOutcome(EvalTargets(options.val_nodes), EvalTargets(options.test_nodes)),
        targets_(options.targets) {}
  Status Take(const EvalTask& task, std::span<const uint32_t> nodes, std::span<const float> logits,
              EvalResult* result) override {
    return of(task.run.nodes).Count(task, nodes, logits, targets_, result);
  }

 private:
  const NodeTargets& targets_;
};

// The outcome of an inference: predictions go to files. Its nodes stand for validation nodes.
class PredictedOutcome final : public EvalOutcome {
 public:
  PredictedOutcome(std::vector<uint32_t> nodes, std::shared_ptr<PredictionFiles> files)
      : EvalOutcome(EvalTargets::Predicted(std::move(nodes)), EvalTargets()),
        files_(std::move(files)) {}
  Status Take(const EvalTask& task, std::span<const uint32_t> nodes, std::span<const float> logits,
              EvalResult*) override {
    return files_->Write(of(task.run.nodes).PlaceOf(nodes.front()), logits);
  }

 private:
  std::shared_ptr<PredictionFiles> files_;
};

}  // namespace gnnd
