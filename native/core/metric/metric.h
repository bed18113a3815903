#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>

// Metrics of evaluations, by what they are computed from. Which of them a task has, and from which
// of its sums, the task says (native/train/tasks).

namespace gnnd {

// Where a task whose items have one class each counts those whose arg-max is their label, among the
// counts of a TaskSums (core/ledger/task_sums.h); other tasks leave it 0.
inline constexpr size_t kCorrect = 0;

// In the order in which they are shown.
enum class Metric : uint32_t {
  kAccuracy = 0,  // share of nodes whose arg-max is their label
  kMicroF1 = 1,   // F1 of all classes' or labels' counts added up
  kMacroF1 = 2,   // mean over classes or labels
  kRocAuc = 3,    // mean over ranked columns, as the next (ranking.h)
  kAveragePrecision = 4,
  kMae = 5,   // mean absolute error of known targets
  kRmse = 6,  // root of their mean squared error
  // Of links, each ranked among negatives (link_rank.h).
  kMrr = 7,    // mean of 1 / rank
  kHits1 = 8,  // share of links whose rank is at most 1, and so on
  kHits3 = 9,
  kHits10 = 10,
  kHits20 = 11,
  kHits50 = 12,
  kHits100 = 13,
};
// In their order, as a job's spec names them.
inline constexpr std::pair<const char*, Metric> kMetricNames[] = {
    {"ACCURACY", Metric::kAccuracy},
    {"MICRO_F1", Metric::kMicroF1},
    {"MACRO_F1", Metric::kMacroF1},
    {"ROC_AUC", Metric::kRocAuc},
    {"AVERAGE_PRECISION", Metric::kAveragePrecision},
    {"MAE", Metric::kMae},
    {"RMSE", Metric::kRmse},
    {"MRR", Metric::kMrr},
    {"HITS_1", Metric::kHits1},
    {"HITS_3", Metric::kHits3},
    {"HITS_10", Metric::kHits10},
    {"HITS_20", Metric::kHits20},
    {"HITS_50", Metric::kHits50},
    {"HITS_100", Metric::kHits100}};
inline constexpr size_t kNumMetrics = std::size(kMetricNames);

// All metrics of an evaluation. NaN where the task has no such metric, or the nodes do not allow
// it.
class Metrics {
 public:
  Metrics();
  double& operator[](Metric metric) { return values_[static_cast<size_t>(metric)]; }
  double operator[](Metric metric) const { return values_[static_cast<size_t>(metric)]; }
  std::span<const double, kNumMetrics> values() const { return values_; }

 private:
  double values_[kNumMetrics];
};

// Counts of one class, or of one label: nodes that have it by what is known, nodes that it was
// predicted for, and nodes of which both hold. Labels that are not known count nowhere.
struct ClassCounts {
  uint64_t hits;
  uint64_t predicted;
  uint64_t actual;
};
inline constexpr size_t kCountsPerClass = sizeof(ClassCounts) / sizeof(uint64_t);

// Integers of a chunk or of a whole evaluation, as counts of each class.
std::span<ClassCounts> ClassesIn(std::span<uint64_t> counts);
std::span<const ClassCounts> ClassesIn(std::span<const uint64_t> counts);

// 0 where `whole` is 0.
double ShareOf(uint64_t part, uint64_t whole);
// F1 is 0 where nothing was predicted and nothing is there, as scikit-learn's is by default.
double F1Of(const ClassCounts& counts);
ClassCounts TotalOf(std::span<const ClassCounts> classes);
// The mean over all labels, or over the classes that are there or were predicted.
double MacroF1OfLabels(std::span<const ClassCounts> labels);
double MacroF1OfClasses(std::span<const ClassCounts> classes);

}  // namespace gnnd
