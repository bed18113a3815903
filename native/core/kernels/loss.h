#pragma once

#include <cmath>
#include <cstdint>
#include <span>

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

// Cross-entropy of softmax(logits) against `label`, in float64. NaN when a logit is. With `grad`
// (like logits) also its gradient, softmax(logits) - one_hot(label).
template <typename T>
double CrossEntropy(std::span<const T> logits, uint32_t label, T* grad) {
  const double largest = logits[ArgMax(logits)];
  double sum = 0;
  for (const T logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  if (grad != nullptr) {
    for (uint32_t c = 0; c < logits.size(); ++c) {
      const double share = std::exp(static_cast<double>(logits[c]) - largest) / sum;
      grad[c] = static_cast<T>(c == label ? share - 1.0 : share);
    }
  }
  return std::log(sum) - (static_cast<double>(logits[label]) - largest);
}

}  // namespace gnnd
