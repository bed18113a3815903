#pragma once

#include <cstdint>
#include <vector>

// Means and deviations of columns over all rows of a matrix that several threads compute range by
// range.

namespace gnnd {

struct Moments {
  std::vector<double> mean;  // [columns]
  // [columns], the population's standard deviation + 1e-12. It is 1 where a column is constant but
  // for rounding in float32, which division would blow up; NaN where a value is not finite.
  std::vector<double> divisor;
};

// Each range is summed by itself, and ranges are combined in their order (Chan, Golub, LeVeque
// 1979), all in float64: neither threads nor the order of arrival decide a bit, and columns do not
// mix.
class RangeMoments {
 public:
  static constexpr uint64_t kRows = 512;  // rows of a range; decides bits

  static uint64_t BytesOf(uint64_t rows, uint64_t columns) {
    return 2 * sizeof(double) * columns * ((rows + kRows - 1) / kRows);
  }

  // Called before the first range of a matrix.
  void Reset(uint64_t rows, uint64_t columns);

  // Adds x, rows [begin, end) of the matrix, [end - begin, columns]. REQUIRES: a whole range, which
  // comes once per matrix, from any thread.
  void Add(uint64_t begin, uint64_t end, const float* x);

  // Called after all ranges.
  Moments Finish() const;

 private:
  uint64_t rows_ = 0;
  uint64_t columns_ = 0;
  std::vector<double> mean_;     // [ranges, columns]
  std::vector<double> squares_;  // [ranges, columns], sums of squared distances to the range's mean
};

// Sets x[i] = (x[i] - mean) / divisor in place, [rows, columns], in float64 and rounded once.
void Standardize(const Moments& moments, uint64_t rows, float* x);

}  // namespace gnnd
