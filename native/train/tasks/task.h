#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/executor/predictions.h"
#include "core/graph/npy.h"
#include "train/tasks/node_targets.h"

namespace gnnd {

// What is learnt of nodes: a class each (classes.cc), several labels (labels.cc) or numbers
// (numbers.cc). A task reads what is known of nodes, says what a model's outputs predict and how
// far they are from what is known, and how classes are balanced. It has no state: the data are in
// NodeTargets.
class NodeTask : public PredictionRule {
 public:
  // Nodes of the targets; `width` is above 0.
  virtual uint64_t Rows(const NodeTargets& targets) const = 0;
  // Makes the targets those of a file of so many rows and `targets->width` columns.
  // kDatasetCorrupt when the file is another.
  virtual Status Bind(const NpyArray& file, uint64_t rows, NodeTargets* targets) const = 0;
  // Whether the node can be learnt from.
  virtual bool Has(const NodeTargets& targets, uint64_t node) const = 0;
  // What a node lacks that Has says false of, for people.
  virtual const char* what() const = 0;
  // The targets of nodes that have one.
  virtual void Read(const NodeTargets& targets, std::span<const uint32_t> nodes,
                    TargetRows* rows) const = 0;

  // Makes room in a chunk's result for what Count adds to.
  virtual void Begin(const NodeTargets& targets, EvalResult* result) const = 0;
  // Adds what a node's outputs come to, `with_loss` also their loss. `known` is memory to use.
  virtual void Count(const NodeTargets& targets, uint64_t node, std::span<const float> outputs,
                     bool with_loss, std::vector<float>* known, EvalResult* result) const = 0;
  // How many scores nodes are ranked by, where they are.
  virtual uint64_t ScoresOf(const NodeTargets& targets) const = 0;
  // Writes those of a node, and what is known of it in the same columns.
  virtual void Score(const NodeTargets& targets, uint64_t node, std::span<const float> outputs,
                     std::span<float> scores, std::span<Outcome> outcomes) const = 0;

  // Metrics of a whole evaluation of at least one node, but for those of rankings.
  virtual Metrics MetricsOf(const EvalResult& whole) const = 0;
  // What decides which parameters are the best, by one metric of the task; errors are negated.
  // Tasks of counts give fractions, so that what ties does tie.
  virtual Quality QualityOf(Metric decides, const EvalResult& whole, const Metrics& metrics) const;

  // Weights of classes by how many of the training nodes have each (ClassWeighting::balanced).
  virtual std::vector<float> BalancedWeights(const NodeTargets& targets,
                                             std::span<const int64_t> train) const = 0;
};

// The quality by the micro F1 of classes or labels.
Quality MicroF1Quality(const EvalResult& whole);

const NodeTask& ClassesOfNodes();
const NodeTask& LabelsOfNodes();
const NodeTask& NumbersOfNodes();

// The one place that chooses.
const NodeTask& TaskOf(Task task);

}  // namespace gnnd
