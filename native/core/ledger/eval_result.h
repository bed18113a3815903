#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/graph/dataset.h"
#include "core/ledger/early_stop.h"
#include "core/metric/ranking.h"

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
  // Of a chunk of a ranked evaluation: [nodes, columns], from this one of its nodes on.
  uint64_t first_node = 0;
  std::vector<float> scores{};
  std::vector<Outcome> outcomes{};
  Ranking ranking = kUnranked;  // of a whole evaluation: means over columns

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
  kRocAuc = 5,    // mean over ranked columns, as the next
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

// What decides which parameters are the best, by one metric of the task; errors are negated.
// Accuracy and micro F1 of labels are fractions of counts, so that what ties does tie.
Quality QualityOf(Task task, Metric decides, const EvalResult& sum);

// Whether evaluations of the task come to it; a ranked one, where columns are.
bool HasMetric(Task task, Metric metric);
constexpr bool IsRanked(Metric metric) {
  return metric == Metric::kRocAuc || metric == Metric::kAveragePrecision;
}

}  // namespace gnnd
