#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/executor/train_work.h"
#include "core/graph/dataset.h"
#include "core/metric/metric.h"
#include "core/metric/ranking.h"

// The known targets of nodes, by the dataset's task (task.h), and their comparison with a model's
// outputs.

namespace gnnd {

// The targets of some nodes, one after the other.
struct TargetRows {
  std::vector<uint32_t> labels;  // kClassification: [nodes]
  std::vector<float> values;     // else [nodes, width], NaN = not known; labels are 0 or 1
};

// Targets of a dataset's nodes or of a propagation's rows, in borrowed memory.
struct NodeTargets {
  Task task = Task::kClassification;
  uint32_t width = 0;                     // classes, labels of a node, or its targets
  std::span<const int32_t> labels{};      // kClassification: [nodes], -1 = none
  std::span<const uint8_t> label_bits{};  // kMultiLabel: [nodes, width], kUnknownLabel = not known
  std::span<const float> values{};        // kRegression: [nodes, width], NaN = not known
  // [width], or empty: weights of classes, or of labels that a node has. They multiply losses; a
  // sum of losses is divided by the number of nodes, not by their weights.
  std::span<const float> weights{};
  // For evaluations: the metric by which parameters are compared, and whether nodes are ranked.
  Metric decides = Metric::kAccuracy;
  bool ranks = false;

  uint64_t rows() const;  // nodes; 0 if no targets are known
  // Whether the node can be learnt from: it has a class of the model, or a known value.
  bool Has(uint64_t node) const;
  // The thing that a node lacks if Has is false, for people.
  const char* what() const;
  // Reads the targets of nodes. REQUIRES: Has(node) for each.
  void Read(std::span<const uint32_t> nodes, TargetRows* rows) const;
};

// Adds nodes and a model's outputs for them to a chunk's result.
class EvalCount {
 public:
  // `with_loss`: their loss is added, too. `kept` is as an EvalTask's.
  EvalCount(const NodeTargets& targets, bool with_loss, std::span<std::byte> kept,
            EvalResult* result);
  // `place`: the node's index among the evaluated nodes.
  void Add(uint64_t node, uint64_t place, std::span<const float> outputs);
  // kNumericDivergence when the loss, or another sum, is not finite.
  Status Finish() const;

 private:
  const NodeTargets& targets_;
  const bool with_loss_;
  const ScoreTable table_;  // empty unless nodes are ranked
  EvalResult* const result_;
  std::vector<float> known_;  // targets of one node
};

// TrainWork::Reduce and TrainWork::Judge of the targets' task.
Status ReduceScores(const NodeTargets& targets, const ReduceTask& task, const Alive& alive);
Judgement JudgementOf(const NodeTargets& targets, const EvalResult& whole,
                      std::span<std::byte> kept);

NodeTargets TargetsOf(const Dataset& dataset);

// How losses are weighted by class. Not of kRegression.
struct ClassWeighting {
  std::vector<float> weights{};  // or none
  // In place of them: each class has the same share of the training nodes' losses, and the mean
  // weight of these nodes is 1: nodes / (classes that one of them has * nodes of the class), as
  // scikit-learn's "balanced". Of labels: nodes that lack one / nodes that have it. 1 where no
  // training node has it.
  bool balanced = false;
};
// NodeTargets::weights.
std::vector<float> WeightsOf(const ClassWeighting& weighting, const NodeTargets& targets,
                             std::span<const int64_t> train);

}  // namespace gnnd
