#include <cstdint>

#include "core/kernels/exp.h"
#include "core/kernels/loss.h"
#include "core/vec/vec.h"

// Computes loss.h's functions for several rows at a time: a row's exponentials are added one by
// one, in float64, while the sums of other rows run in parallel.

namespace gnnd::GNND_SET {
namespace {

constexpr uint32_t kTogether = 4;

GNND_VEC F32x16 Larger(const F32x16& a, const F32x16& b) {
  F32x16 larger;
  GNND_PARTS larger.part[p] = a.part[p] > b.part[p] ? a.part[p] : b.part[p];
  return larger;
}

// The largest element as ArgMax finds it: a NaN wins only if it comes first.
GNND_VEC float LargestOf(const float* row, uint32_t classes) {
  float largest = row[0];
  if (classes < kLanes) {
    for (uint32_t c = 1; c < classes; ++c) largest = row[c] > largest ? row[c] : largest;
    return largest;
  }
  F32x16 best = Broadcast(row[0]);
  for (uint32_t c = 0; c + kLanes <= classes; c += kLanes) best = Larger(Load(row + c), best);
  best = Larger(Load(row + classes - kLanes), best);  // the rest; some elements count twice
  float lanes[kLanes];
  Store(lanes, best);
  for (const float lane : lanes) largest = lane > largest ? lane : largest;
  return largest;
}

// ArgMax, given the largest element.
GNND_VEC uint32_t PlaceOf(float largest, const float* row, uint32_t classes) {
  uint32_t place = classes;
  for (uint32_t c = 0; c < classes; ++c) {
    const uint32_t here = row[c] == largest ? c : classes;
    place = here < place ? here : place;
  }
  return place < classes ? place : 0;  // nothing equals a NaN
}

GNND_VEC void WriteExps(const float* row, uint32_t classes, float largest, float* to) {
  for (uint32_t c = 0; c < classes; c += kLanes) {
    const uint32_t left = classes - c;
    const Tail tail = TailOf(left < kLanes ? left : kLanes);
    float lanes[kLanes];
    Store(lanes, Load(row + c, tail));
    for (float& lane : lanes) lane = ExpOfNonPositive(lane - largest);
    Store(to + c, Load(lanes), tail);
  }
}

template <uint32_t kRows>
GNND_VEC void Run(const CrossEntropyRows& op, uint32_t first) {
  const auto classes = static_cast<uint32_t>(op.classes);
  float* const grad = op.grad + first * op.classes;
  double sum[kRows] = {};
  for (uint32_t r = 0; r < kRows; ++r) {
    const float* const row = op.logits + (first + r) * op.classes;
    const uint32_t label = op.labels[first + r];
    const float largest = LargestOf(row, classes);
    op.correct[first + r] = PlaceOf(largest, row, classes) == label ? 1 : 0;
    // A partial result, until the row's sum is known.
    op.losses[first + r] = static_cast<double>(row[label] - largest);
    WriteExps(row, classes, largest, grad + r * op.classes);
  }
  for (uint32_t c = 0; c < classes; ++c) {
#pragma GCC unroll 4
    for (uint32_t r = 0; r < kRows; ++r) sum[r] += static_cast<double>(grad[r * op.classes + c]);
  }
  for (uint32_t r = 0; r < kRows; ++r) {
    const auto inverse = static_cast<float>(1.0 / sum[r]);
    float* const to = grad + r * op.classes;
    for (uint32_t c = 0; c < classes; ++c) to[c] *= inverse;
    to[op.labels[first + r]] -= 1.0F;
    op.losses[first + r] = std::log(sum[r]) - op.losses[first + r];
  }
}

void CrossEntropy(const CrossEntropyRows& op, uint32_t begin, uint32_t end) {
  uint32_t r = begin;
  for (; r + kTogether <= end; r += kTogether) Run<kTogether>(op, r);
  for (; r < end; ++r) Run<1>(op, r);
}

}  // namespace

const LossLoops kLossLoops = {CrossEntropy};

}  // namespace gnnd::GNND_SET
