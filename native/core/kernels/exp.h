#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/base/hd.h"

namespace gnnd {

// exp(x) for x <= 0 to about 1 ulp, in operations that vectorise and round the same everywhere: 2^n
// * p(f) with n the nearest integer to x / ln 2. 0 below -87; NaN stays.
GNND_HD float ExpOfNonPositive(float x) {
  const float shifted = x * 1.44269504F + 12582912.0F;  // 1.5 * 2^23: the sum rounds to integers
  const float n = shifted - 12582912.0F;
  const float f = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.0F / 5040.0F;
  p = p * f + 1.0F / 720.0F;
  p = p * f + 1.0F / 120.0F;
  p = p * f + 1.0F / 24.0F;
  p = p * f + 1.0F / 6.0F;
  p = p * f + 0.5F;
  p = p * (f * f) + (f + 1.0F);
  uint32_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 127U) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof power);
  return x < -87.0F ? 0.0F : p * power;
}
GNND_HD double ExpOfNonPositive(double x) { return std::exp(x); }

}  // namespace gnnd
