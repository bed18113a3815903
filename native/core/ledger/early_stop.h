#pragma once

#include <cstdint>

// When a job ends before its last epoch: a pure function of its evaluations, in order. It is folded
// one evaluation at a time, where an evaluation is committed, so that every crew and every crash
// meets the same end.
//
// The *reference* is the last epoch whose quality on the validation nodes (task_sums.h: a metric of
// the task; errors are negated) exceeded that of the reference before it by more than min_delta;
// the first one evaluated is the first reference. After `patience`
// evaluations in a row that did not, the job stops. With min_delta 0 the reference is the best
// epoch.

namespace gnnd {

struct EarlyStop {
  uint32_t patience = 0;  // evaluations without improvement that end the job; 0 = never
  double min_delta = 0;   // gain in quality that counts: shares, or units of the targets
};
inline constexpr double kMaxMinDelta = 1e12;

// part / whole, the larger the better: an accuracy has the correct nodes and all validation nodes.
// `whole` is above 0.
struct Quality {
  double part = 0;
  double whole = 0;
};

// Whether a is better by more than `margin`; false for equals, so that the first one stays. Without
// a margin the comparison of counts is exact up to 2^26 nodes, with one it is the same everywhere.
constexpr bool Exceeds(Quality a, Quality b, double margin = 0) {
  const double gain = a.part * b.whole - b.part * a.whole;
  return gain > margin * (a.whole * b.whole);
}

// The reference after the evaluation of `epoch`, given the one before.
constexpr uint64_t NextReference(const EarlyStop& rule, uint64_t epoch, Quality quality,
                                 uint64_t reference, Quality reference_quality) {
  return Exceeds(quality, reference_quality, rule.min_delta) ? epoch : reference;
}

// Whether the job ends with an evaluation this many evaluations after the reference.
constexpr bool StopsAfter(const EarlyStop& rule, uint64_t evaluations_since) {
  return rule.patience > 0 && evaluations_since >= rule.patience;
}

}  // namespace gnnd
