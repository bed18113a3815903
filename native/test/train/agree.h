#pragma once

#include <cmath>
#include <vector>

#include "test/device/support.h"
#include "training_loop.h"

namespace gnnd::test {

// Compares every bit if a device's matrix products are the processor's, otherwise allows the share
// `part` of the whole, which products in another order lose.
inline bool Agree(const std::vector<float>& a, const std::vector<float>& b, double part) {
  if (HasProcessorsProducts()) return SameBits(a, b);
  double off = 0;
  double all = 0;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    off += std::pow(double{a[i]} - double{b[i]}, 2);
    all += std::pow(double{b[i]}, 2);
  }
  return a.size() == b.size() && std::sqrt(off) <= part * std::sqrt(all);
}

// For a device's loop after each step: where products differ, it goes on from the processor's
// parameters, since optimizers make steps of full length of differences in rounding.
inline void Rejoin(Loop* device, const Loop& cpu) {
  if (!HasProcessorsProducts()) device->Follow(cpu);
}

}  // namespace gnnd::test
