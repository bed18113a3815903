#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "core/kernels/exp.h"
#include "core/vec/dispatch.h"

namespace gnnd {

// Index of the largest element, the first of equals.
template <typename T>
uint32_t ArgMax(std::span<const T> row) {
  uint32_t best = 0;
  for (uint32_t c = 1; c < row.size(); ++c) {
    if (row[c] > row[best]) best = c;
  }
  return best;
}

// A row's loss, on every device: from the sum of its exponentials, and its label's logit minus the
// largest logit.
inline double LossOf(double exp_sum, double margin) { return std::log(exp_sum) - margin; }

// Cross-entropy of softmax(logits) against `label`: one exponential per logit, in the logits' type;
// NaN when a logit is. With `grad` (like logits) also its gradient, softmax(logits) minus
// one_hot(label).
template <typename T>
double CrossEntropy(std::span<const T> logits, uint32_t label, T* grad) {
  const T largest = logits[ArgMax(logits)];
  double sum = 0;
  if (grad == nullptr) {
    for (const T logit : logits) sum += static_cast<double>(ExpOfNonPositive(logit - largest));
  } else {
    for (uint32_t c = 0; c < logits.size(); ++c) grad[c] = ExpOfNonPositive(logits[c] - largest);
    for (uint32_t c = 0; c < logits.size(); ++c) sum += static_cast<double>(grad[c]);
    const T inverse = static_cast<T>(1.0 / sum);
    for (uint32_t c = 0; c < logits.size(); ++c) grad[c] *= inverse;
    grad[label] -= T{1};
  }
  return LossOf(sum, static_cast<double>(logits[label] - largest));
}

// CrossEntropy and "ArgMax is the label" for rows [begin, end): vectorised, with the same bits.
struct CrossEntropyRows {
  const float* logits = nullptr;     // [rows, classes]
  const uint32_t* labels = nullptr;  // [rows]
  uint64_t classes = 0;
  float* grad = nullptr;       // like logits
  double* losses = nullptr;    // [rows]
  uint8_t* correct = nullptr;  // [rows]
};
struct LossLoops {
  void (*cross_entropy)(const CrossEntropyRows& op, uint32_t begin, uint32_t end);
};
GNND_DECLARE_LOOPS(LossLoops, kLossLoops);

// The losses of a node with several labels, or with numbers to regress on. `targets` is like
// `outputs`; NaN = not known, which has neither loss nor gradient. A node's loss is the mean over
// its known targets, so that every node weighs the same; 0 if none is known. With `grad` (like
// outputs) also the gradient.
//
// Binary cross-entropy of sigmoid(outputs) against targets of 0 or 1. `weights` [targets], or null,
// multiplies the loss of labels that are 1 (pos_weight of torch.nn.BCEWithLogitsLoss).
double MultiLabelLoss(std::span<const float> outputs, const float* targets, const float* weights,
                      float* grad);
// Squared differences.
double SquaredErrorLoss(std::span<const float> outputs, const float* targets, float* grad);

}  // namespace gnnd
