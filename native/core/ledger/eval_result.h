#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/graph/dataset.h"
#include "core/ledger/early_stop.h"

// What evaluations count, chunk by chunk, and the metrics that follow from the counts. Integers are
// added up exactly and floating-point sums in the order of chunks, so that metrics have the same
// bits whoever computed which chunk.

namespace gnnd {

// Of one class, or of one label: nodes that have it by what is known, nodes that it was predicted
// for, and nodes of which both hold. Labels that are not known count nowhere.
struct ClassCounts {
  uint64_t hits;
  uint64_t predicted;
  uint64_t actual;
};

// What a chunk of an evaluation came to, but for its classes. Only the last phase's have nodes.
struct EvalSums {
  double loss_sum;        // of training, summed over its nodes
  uint64_t nodes;         // with multiplicity
  uint64_t correct;       // classification: nodes whose arg-max is their label
  uint64_t rows;          // rows computed; snapshots read it at any time, hence atomically
  uint64_t values;        // regression: known targets
  double absolute_error;  // regression: summed over them
  double squared_error;
  uint64_t reserved;
};
static_assert(sizeof(EvalSums) == 64);

struct EvalResult : EvalSums {
  std::vector<ClassCounts> classes{};  // empty for regression, and where nobody counts

  // Of a later chunk.
  void Add(const EvalSums& sums, std::span<const ClassCounts> counts);
};

// In the order of `Metrics::values`.
enum class Metric : uint32_t {
  kAccuracy = 0,  // of classification: share of nodes whose arg-max is their label
  kMicroF1 = 1,   // of all classes' or labels' counts added up
  kMacroF1 = 2,   // mean over classes or labels
  kMae = 3,       // mean absolute error of known targets
  kRmse = 4,      // root of their mean squared error
  kRocAuc = 5,
  kAveragePrecision = 6,
};
inline constexpr uint32_t kNumMetrics = 7;
inline constexpr uint32_t kMetricSlots = 8;

// NaN: the task has no such metric, or the nodes do not allow it.
struct Metrics {
  double values[kMetricSlots];

  double& operator[](Metric metric) { return values[static_cast<uint32_t>(metric)]; }
  double operator[](Metric metric) const { return values[static_cast<uint32_t>(metric)]; }
};

// Of a whole evaluation. F1 is 0 where nothing was predicted and nothing is there, as
// scikit-learn's is by default; its macro mean is over all labels, or over the classes that are
// there or were predicted.
Metrics MetricsOf(Task task, const EvalResult& sum);

// What decides which parameters are the best: accuracy, micro F1 of labels, or the mean absolute
// error, negated.
Quality QualityOf(Task task, const EvalResult& sum);

// Of an epoch of which only these are known: what was written before there were other metrics.
Metrics MetricsOfAccuracy(uint64_t correct, uint64_t nodes);

}  // namespace gnnd
