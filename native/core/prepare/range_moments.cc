#include "core/prepare/range_moments.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/check.h"

namespace gnnd {
namespace {

// Relative deviation up to which a column counts as constant: some roundings of float32.
constexpr double kConstant = 1e-6;

double DivisorOf(double mean, double variance) {
  if (!std::isfinite(mean) || !std::isfinite(variance)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const double deviation = std::sqrt(variance);
  return deviation <= kConstant * std::abs(mean) ? 1.0 : deviation + 1e-12;
}

}  // namespace

void RangeMoments::Reset(uint64_t rows, uint64_t columns) {
  rows_ = rows;
  columns_ = columns;
  const uint64_t size = columns * ((rows + kRows - 1) / kRows);
  mean_.resize(size);
  squares_.resize(size);
}

void RangeMoments::Add(uint64_t begin, uint64_t end, const float* x) {
  GNND_CHECK(begin % kRows == 0 && end == std::min(begin + kRows, rows_));
  double* const mean = mean_.data() + begin / kRows * columns_;
  double* const squares = squares_.data() + begin / kRows * columns_;
  const uint64_t count = end - begin;
  std::fill_n(mean, columns_, 0.0);
  std::fill_n(squares, columns_, 0.0);
  for (uint64_t r = 0; r < count; ++r) {
    const float* const row = x + r * columns_;
    for (uint64_t c = 0; c < columns_; ++c) mean[c] += static_cast<double>(row[c]);
  }
  for (uint64_t c = 0; c < columns_; ++c) mean[c] /= static_cast<double>(count);
  for (uint64_t r = 0; r < count; ++r) {
    const float* const row = x + r * columns_;
    for (uint64_t c = 0; c < columns_; ++c) {
      const double distance = static_cast<double>(row[c]) - mean[c];
      squares[c] += distance * distance;
    }
  }
}

Moments RangeMoments::Finish() const {
  Moments moments{std::vector<double>(columns_, 0.0), std::vector<double>(columns_, 0.0)};
  for (uint64_t begin = 0; begin < rows_; begin += kRows) {
    const double* const mean = mean_.data() + begin / kRows * columns_;
    const double* const squares = squares_.data() + begin / kRows * columns_;
    const auto before = static_cast<double>(begin);
    const auto here = static_cast<double>(std::min(kRows, rows_ - begin));
    const double share = here / (before + here);
    for (uint64_t c = 0; c < columns_; ++c) {
      const double distance = mean[c] - moments.mean[c];
      moments.mean[c] += distance * share;
      moments.divisor[c] += squares[c] + distance * distance * before * share;
    }
  }
  for (uint64_t c = 0; c < columns_; ++c) {
    const double variance = moments.divisor[c] / static_cast<double>(rows_);
    moments.divisor[c] = DivisorOf(moments.mean[c], variance);
  }
  return moments;
}

void Standardize(const Moments& moments, uint64_t rows, float* x) {
  const uint64_t columns = moments.mean.size();
  for (uint64_t r = 0; r < rows; ++r, x += columns) {
    for (uint64_t c = 0; c < columns; ++c) {
      const double distance = static_cast<double>(x[c]) - moments.mean[c];
      x[c] = static_cast<float>(distance / moments.divisor[c]);
    }
  }
}

}  // namespace gnnd
