#pragma once

#include <cmath>
#include <vector>

// Chi-square tests at level 1e-6. With fixed keys they always give the same answer, and the frozen
// draws pass them.

namespace gnnd::test {

// Quantile 1 - 1e-6 of chi-square by Wilson and Hilferty; within 1 % from 4 degrees on.
inline double ChiSquareLimit(double degrees_of_freedom) {
  constexpr double kNormalQuantile = 4.7534;
  const double a = 2.0 / (9.0 * degrees_of_freedom);
  const double root = 1.0 - a + kNormalQuantile * std::sqrt(a);
  return 1.01 * degrees_of_freedom * root * root * root;
}

inline double ChiSquare(const std::vector<double>& observed, const std::vector<double>& expected) {
  double sum = 0;
  for (size_t i = 0; i < observed.size(); ++i) {
    const double difference = observed[i] - expected[i];
    sum += difference * difference / expected[i];
  }
  return sum;
}

}  // namespace gnnd::test
