#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "core/base/bfloat16.h"
#include "core/base/half.h"

// Random numbers to train with, and what "the same" means.

namespace gnnd::test {

class Random {
 public:
  explicit Random(uint64_t seed) : generator_(seed) {}
  uint32_t Below(uint64_t bound) { return static_cast<uint32_t>(generator_() % bound); }
  // Floats of many magnitudes, with zeros of both signs, so that a sum in another order differs.
  float Float() {
    if (Below(16) == 0) return Below(2) == 0 ? 0.0F : -0.0F;
    const float fraction = static_cast<float>(Below(1U << 24)) / 8388608.0F - 1.0F;
    return std::ldexp(fraction, static_cast<int>(Below(20)) - 10);
  }
  template <typename T>
  std::vector<T> Many(uint64_t count) {
    std::vector<T> values(count);
    for (T& value : values) value = Make<T>();
    return values;
  }

 private:
  template <typename T>
  T Make() {
    if constexpr (std::is_same_v<T, Half>) {
      return static_cast<Half>(Below(0x7C00) | Below(2) << 15);  // finite
    } else if constexpr (std::is_same_v<T, Bfloat16>) {
      return ToBfloat16(Float());
    } else {
      return static_cast<T>(Float());
    }
  }

  std::mt19937_64 generator_;
};

template <typename T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// A number that is none may have any bits.
inline bool SameOrNan(const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) != std::isnan(b[i])) return false;
    if (!std::isnan(a[i]) && std::memcmp(&a[i], &b[i], sizeof a[i]) != 0) return false;
  }
  return a.size() == b.size();
}

}  // namespace gnnd::test
