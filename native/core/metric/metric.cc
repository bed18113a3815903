#include "core/metric/metric.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace gnnd {
namespace {

double MacroF1Of(std::span<const ClassCounts> classes, bool of_those_there) {
  double sum = 0;
  uint64_t counted = 0;
  for (const ClassCounts& one : classes) {
    if (of_those_there && one.predicted + one.actual == 0) continue;
    sum += F1Of(one);
    ++counted;
  }
  return counted == 0 ? 0 : sum / static_cast<double>(counted);
}

}  // namespace

Metrics::Metrics() {
  std::fill(std::begin(values_), std::end(values_), std::numeric_limits<double>::quiet_NaN());
}

std::span<ClassCounts> ClassesIn(std::span<uint64_t> counts) {
  return {reinterpret_cast<ClassCounts*>(counts.data()), counts.size() / kCountsPerClass};
}

std::span<const ClassCounts> ClassesIn(std::span<const uint64_t> counts) {
  return {reinterpret_cast<const ClassCounts*>(counts.data()), counts.size() / kCountsPerClass};
}

double ShareOf(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// 2 TP / (2 TP + FP + FN)
double F1Of(const ClassCounts& counts) {
  return ShareOf(2 * counts.hits, counts.predicted + counts.actual);
}

ClassCounts TotalOf(std::span<const ClassCounts> classes) {
  ClassCounts total{};
  for (const ClassCounts& one : classes) {
    total.hits += one.hits;
    total.predicted += one.predicted;
    total.actual += one.actual;
  }
  return total;
}

double MacroF1OfLabels(std::span<const ClassCounts> labels) { return MacroF1Of(labels, false); }

double MacroF1OfClasses(std::span<const ClassCounts> classes) { return MacroF1Of(classes, true); }

}  // namespace gnnd
