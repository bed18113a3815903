#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/executor/predictions.h"
#include "core/graph/npy.h"
#include "train/tasks/node_targets.h"

namespace gnnd {

// A task: a class per node (classes.cc), several labels (labels.cc) or numbers (numbers.cc). It
// reads the known targets of nodes, says what a model's outputs predict and how far they are from
// the targets, and how classes are balanced. It has no state: the data are in NodeTargets.
class NodeTask : public PredictionRule {
 public:
  // Number of nodes with targets; `width` is above 0.
  virtual uint64_t Rows(const NodeTargets& targets) const = 0;
  // Makes the targets those of a file with this many rows and `targets->width` columns.
  // kDatasetCorrupt when the file does not fit.
  virtual Status Bind(const NpyArray& file, uint64_t rows, NodeTargets* targets) const = 0;
  // Whether a target of the node is known, so that it can be learnt from.
  virtual bool Has(const NodeTargets& targets, uint64_t node) const = 0;
  // The thing that a node lacks if Has is false, for people.
  virtual const char* what() const = 0;
  // The targets of nodes that have one.
  virtual void Read(const NodeTargets& targets, std::span<const uint32_t> nodes,
                    TargetRows* rows) const = 0;

  // Prepares a chunk's result for Count.
  virtual void Begin(const NodeTargets& targets, EvalResult* result) const = 0;
  // Adds a node's outputs to the result, `with_loss` also their loss. `known` is scratch memory.
  virtual void Count(const NodeTargets& targets, uint64_t node, std::span<const float> outputs,
                     bool with_loss, std::vector<float>* known, EvalResult* result) const = 0;
  // Number of scores by which a node is ranked, if nodes are ranked.
  virtual uint64_t ScoresOf(const NodeTargets& targets) const = 0;
  // Writes a node's scores, and its known outcomes in the same columns.
  virtual void Score(const NodeTargets& targets, uint64_t node, std::span<const float> outputs,
                     std::span<float> scores, std::span<Outcome> outcomes) const = 0;

  // Metrics of a whole evaluation of at least one node, except those of rankings.
  virtual Metrics MetricsOf(const EvalResult& whole) const = 0;
  // The quality that decides which parameters are the best, by one metric of the task; errors are
  // negated. Tasks of counts give fractions, so that equal results tie.
  virtual Quality QualityOf(Metric decides, const EvalResult& whole, const Metrics& metrics) const;

  // Weights of classes by their numbers of training nodes (ClassWeighting::balanced).
  virtual std::vector<float> BalancedWeights(const NodeTargets& targets,
                                             std::span<const int64_t> train) const = 0;
};

// The quality by the micro F1 of classes or labels.
Quality MicroF1Quality(const EvalResult& whole);

const NodeTask& ClassesOfNodes();
const NodeTask& LabelsOfNodes();
const NodeTask& NumbersOfNodes();

// The only place that chooses a task.
const NodeTask& TaskOf(Task task);

}  // namespace gnnd
