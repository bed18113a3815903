#include "core/kernels/exp.h"
#include "cuda/dev.h"
#include "cuda/operators.h"

// Softmax and cross-entropy, one warp per row. 32 exponentials are computed at once and added one
// by one, so that the sum is that of core/kernels/loss.h.

namespace gnnd::cuda {
namespace {

GNND_DEVICE float LargestOf(const float* row, uint32_t columns) {
  float largest = row[0];
  for (uint32_t c = Lane(); c < columns; c += kWarpLanes) {
    if (row[c] > largest) largest = row[c];
  }
  GNND_UNROLL
  for (uint32_t bits = 1; bits < kWarpLanes; bits *= 2) {
    const float other = ShuffleXor(kFullMask, largest, bits);
    if (other > largest) largest = other;
  }
  return largest;
}

// Computes exp(row - largest) and returns the sum; keeps the values in `exponentials` unless null.
GNND_DEVICE double SumOfExponentials(const float* row, uint32_t columns, float largest,
                                     float* exponentials) {
  double sum = 0;
  for (uint32_t from = 0; from < columns; from += kWarpLanes) {
    const uint32_t c = from + Lane();
    const float value = c < columns ? ExpOfNonPositive(row[c] - largest) : 0.0F;
    if (exponentials != nullptr && c < columns) exponentials[c] = value;
    const uint32_t count = columns - from < kWarpLanes ? columns - from : kWarpLanes;
    for (uint32_t k = 0; k < count; ++k) {
      sum += static_cast<double>(Shuffle(kFullMask, value, k));
    }
  }
  return sum;
}

GNND_KERNEL CrossEntropyRows(LossRows op, uint32_t begin, uint32_t end) {
  for (uint64_t r = begin + GridThread() / kWarpLanes; r < end; r += GridThreads() / kWarpLanes) {
    const float* const row = op.logits + r * op.stride;
    float* const grad = op.grad == nullptr ? nullptr : op.grad + r * op.stride;
    const uint32_t label = op.labels[r];
    const float largest = LargestOf(row, op.columns);
    const float margin = row[label] - largest;
    const double sum = SumOfExponentials(row, op.columns, largest, grad);
    if (grad != nullptr) {
      const float inverse = static_cast<float>(1.0 / sum);
      for (uint32_t c = Lane(); c < op.columns; c += kWarpLanes) {
        const float share = grad[c] * inverse;
        grad[c] = c == label ? share - 1.0F : share;
      }
    }
    if (Lane() == 0) {
      op.exp_sums[r] = sum;
      op.margins[r] = margin;
    }
  }
}

GNND_KERNEL ArgMaxRows(const float* logits, uint64_t stride, uint32_t columns, uint32_t begin,
                       uint32_t end, uint32_t* best) {
  for (uint64_t r = begin + GridThread(); r < end; r += GridThreads()) {
    const float* const row = logits + r * stride;
    uint32_t largest = 0;
    for (uint32_t c = 1; c < columns; ++c) {
      if (row[c] > row[largest]) largest = c;
    }
    best[r] = largest;
  }
}

}  // namespace

void CrossEntropy(const Queue& queue, const LossRows& op, uint32_t begin, uint32_t end) {
  LaunchFor(queue, uint64_t{end - begin} * kWarpLanes, CrossEntropyRows, op, begin, end);
}

void ArgMax(const Queue& queue, const float* logits, uint64_t stride, uint32_t columns,
            uint32_t begin, uint32_t end, uint32_t* best) {
  LaunchFor(queue, end - begin, ArgMaxRows, logits, stride, columns, begin, end, best);
}

}  // namespace gnnd::cuda
