#pragma once

#include <cstdint>
#include <vector>

// Means and deviations of columns over all rows of a matrix that is computed range by range, by
// several threads.

namespace gnnd {

struct Moments {
  std::vector<double> mean;  // [columns]
  // [columns], the population's standard deviation + 1e-12. 1 where a column is constant but for
  // the rounding of float32, which would be blown up otherwise; NaN where a value is not finite.
  std::vector<double> divisor;
};

// Each range is summed by itself, and ranges are put together in their order (Chan, Golub, LeVeque
// 1979), all in float64: neither threads nor the order in which ranges come decide a bit, and no
// column is touched by another.
class RangeMoments {
 public:
  static constexpr uint64_t kRows = 512;  // of a range; decides bits

  static uint64_t BytesOf(uint64_t rows, uint64_t columns) {
    return 2 * sizeof(double) * columns * ((rows + kRows - 1) / kRows);
  }

  // Before the first range of a matrix.
  void Reset(uint64_t rows, uint64_t columns);

  // x: rows [begin, end) of the matrix, [end - begin, columns]. REQUIRES: a whole range; each comes
  // once after Reset, or again for the next matrix of that shape, from any thread.
  void Add(uint64_t begin, uint64_t end, const float* x);

  // After all ranges.
  Moments Finish() const;

 private:
  uint64_t rows_ = 0;
  uint64_t columns_ = 0;
  std::vector<double> mean_;     // [ranges, columns]
  std::vector<double> squares_;  // [ranges, columns], of distances to the range's mean
};

// x[i] = (x[i] - mean) / divisor, [rows, columns] in place, in float64 and rounded once.
void Standardize(const Moments& moments, uint64_t rows, float* x);

}  // namespace gnnd
