#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/hd.h"

// Edge weights of a graph convolution with symmetric normalisation and self-loops (Kipf & Welling,
// ICLR 2017), from degrees of the full graph. Frozen, because it decides bits: in float64,
//
//   weight(u -> v) = inv(u) * (inv(v) * (d_v / taken_v)),  inv(x) = 1 / sqrt(d_x + 1)
//   self_weight(v) = 1 / (d_v + 1)
//
// rounded to float32 once. taken_v = min(d_v, fanout) edges stand for all d_v of the row; where
// some are favoured (locality.h) an edge counts 1 / q, rounded to float32, in place of d_v /
// taken_v. Divisions and roots of float64 are exactly rounded everywhere, so every device gives the
// same bits.

namespace gnnd {

// inv(x) of a node of `degree` in-neighbours.
GNND_HD double GcnInverse(double degree) { return 1.0 / std::sqrt(degree + 1.0); }

// The factor of a row for its sources' inverses; taken >= 1.
GNND_HD double GcnRowFactor(double inverse, double degree, uint32_t taken) {
  return inverse * (degree / static_cast<double>(taken));
}

GNND_HD float GcnWeight(double source_inverse, double row_factor) {
  return static_cast<float>(source_inverse * row_factor);
}

GNND_HD float GcnSelfWeight(double degree) { return static_cast<float>(1.0 / (degree + 1.0)); }

}  // namespace gnnd
