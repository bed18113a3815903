#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "core/base/half.h"

// Tables of float16 for tests, and what they are in float32.

namespace gnnd::test {

// Numbers of either sign, below 2 in size, with subnormal ones among them.
inline std::vector<Half> RandomHalves(uint64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Half> halves(count);
  for (Half& half : halves) half = static_cast<Half>(random() & 0xBFFF);
  return halves;
}

inline std::vector<float> Widened(std::span<const Half> halves) {
  std::vector<float> values;
  for (const Half half : halves) values.push_back(ToFloat(half));
  return values;
}

}  // namespace gnnd::test
