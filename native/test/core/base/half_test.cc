#include "core/base/half.h"

#include <doctest/doctest.h>

#include <cmath>

namespace gnnd {
namespace {

TEST_CASE("every float16 has the value that its bits stand for") {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = ToFloat(static_cast<Half>(bits));
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const auto fraction = static_cast<double>(bits & 1023);
    CAPTURE(bits);
    REQUIRE(std::signbit(value) == (bits >> 15 != 0));
    if (exponent == 31) {
      REQUIRE(std::isnan(value) == (fraction != 0));
      REQUIRE(std::isinf(value) == (fraction == 0));
      continue;
    }
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    REQUIRE(static_cast<double>(std::fabs(value)) == magnitude);
  }
}

}  // namespace
}  // namespace gnnd
