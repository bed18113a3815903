#pragma once

#include <cstdint>

// When a job ends before its last epoch: a pure function of its evaluations, in order. It is folded
// one evaluation at a time, where an evaluation is committed, so that every crew and every crash
// meets the same end.
//
// The *reference* is the last epoch whose validation accuracy exceeded that of the reference before
// it by more than min_delta; the first one evaluated is the first reference. After `patience`
// evaluations in a row that did not, the job stops. With min_delta 0 the reference is the best
// epoch.

namespace gnnd {

struct EarlyStop {
  uint32_t patience = 0;  // evaluations without improvement that end the job; 0 = never
  double min_delta = 0;   // in shares of the validation nodes, [0, 1)
};

// Of `nodes` validation nodes, so many were classified correctly.
struct Accuracy {
  uint64_t correct = 0;
  uint64_t nodes = 0;
};

// Whether a is the better accuracy by more than `margin`; false for equals, so that the first one
// stays. Without a margin the comparison is exact up to 2^26 nodes, with one it is the same
// everywhere.
constexpr bool Exceeds(Accuracy a, Accuracy b, double margin = 0) {
  const auto a_nodes = static_cast<double>(a.nodes);
  const auto b_nodes = static_cast<double>(b.nodes);
  const double gain =
      static_cast<double>(a.correct) * b_nodes - static_cast<double>(b.correct) * a_nodes;
  return gain > margin * (a_nodes * b_nodes);
}

// The reference after the evaluation of `epoch`, given the one before.
constexpr uint64_t NextReference(const EarlyStop& rule, uint64_t epoch, Accuracy accuracy,
                                 uint64_t reference, Accuracy reference_accuracy) {
  return Exceeds(accuracy, reference_accuracy, rule.min_delta) ? epoch : reference;
}

// Whether the job ends with an evaluation, which is so many after the reference.
constexpr bool StopsAfter(const EarlyStop& rule, uint64_t evaluations_since) {
  return rule.patience > 0 && evaluations_since >= rule.patience;
}

}  // namespace gnnd
