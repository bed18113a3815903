#pragma once

#include <cmath>
#include <vector>

#include "test/device/support.h"
#include "training_loop.h"

namespace gnnd::test {

// In every bit where a device's matrix products are the processor's, else but for a part of the
// whole that products in another order lose.
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

}  // namespace gnnd::test
