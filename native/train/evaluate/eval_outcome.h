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

// An evaluation's nodes, the layers whose rows of them it takes, and the way that these go.
class EvalOutcome {
 public:
  EvalOutcome(std::vector<uint32_t> layers, EvalTargets validation, EvalTargets test)
      : layers_(std::move(layers)), targets_{std::move(validation), std::move(test)} {}
  virtual ~EvalOutcome() = default;

  // Ascending, each once.
  const std::vector<uint32_t>& nodes(EvalNodes which) const { return of(which).once(); }
  bool empty() const { return targets_[0].once().empty() && targets_[1].once().empty(); }
  uint64_t bytes() const { return targets_[0].bytes() + targets_[1].bytes(); }

  // Ascending; never none.
  const std::vector<uint32_t>& layers() const { return layers_; }

  // Takes one of these layers' rows of some of the task's nodes.
  virtual Status Take(const EvalTask& task, const LayerRows& rows, EvalResult* result) = 0;

 protected:
  const EvalTargets& of(EvalNodes which) const { return targets_[static_cast<uint32_t>(which)]; }

 private:
  std::vector<uint32_t> layers_;
  EvalTargets targets_[2];  // by EvalNodes
};

// Counts right answers, and the loss of validation nodes. Borrows the options.
class CountedOutcome final : public EvalOutcome {
 public:
  explicit CountedOutcome(const TrainOptions& options)
      : EvalOutcome({options.model.num_layers - 1}, EvalTargets(options.val_nodes),
                    EvalTargets(options.test_nodes)),
        targets_(options.targets) {}
  Status Take(const EvalTask& task, const LayerRows& logits, EvalResult* result) override {
    return of(task.run.nodes).Count(task, logits.nodes, logits.values, targets_, result);
  }

 private:
  const NodeTargets& targets_;
};

// The outcome of an inference: rows go to files. Its nodes stand for validation nodes.
class PredictedOutcome final : public EvalOutcome {
 public:
  PredictedOutcome(std::vector<uint32_t> nodes, std::shared_ptr<PredictionFiles> files)
      : EvalOutcome(files->layers(), EvalTargets::Predicted(std::move(nodes)), EvalTargets()),
        files_(std::move(files)) {}
  Status Take(const EvalTask& task, const LayerRows& rows, EvalResult*) override {
    return files_->Write(rows.layer, of(task.run.nodes).PlaceOf(rows.nodes.front()), rows.values);
  }

 private:
  std::shared_ptr<PredictionFiles> files_;
};

}  // namespace gnnd
