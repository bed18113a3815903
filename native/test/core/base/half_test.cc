#include "core/base/half.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <vector>

namespace gnnd {
namespace {

std::vector<Half> AllHalves() {
  std::vector<Half> halves;
  for (uint32_t bits = 0; bits < 65536; ++bits) halves.push_back(static_cast<Half>(bits));
  return halves;
}

std::vector<InstructionSet> SetsOfThisMachine() {
  std::vector<InstructionSet> sets = {InstructionSet::kScalar};
  if (DetectInstructionSet() >= InstructionSet::kAvx2) sets.push_back(InstructionSet::kAvx2);
  if (DetectInstructionSet() >= InstructionSet::kAvx512) sets.push_back(InstructionSet::kAvx512);
  return sets;
}

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

TEST_CASE("every variant widens every float16 to the same bits") {
  const std::vector<Half> halves = AllHalves();
  for (const InstructionSet set : SetsOfThisMachine()) {
    std::vector<float> widened(halves.size());
    WidenFor(set)(halves.data(), halves.size(), widened.data());
    for (size_t i = 0; i < halves.size(); ++i) {
      CAPTURE(i);
      INFO(NameOf(set));
      REQUIRE(std::bit_cast<uint32_t>(widened[i]) == std::bit_cast<uint32_t>(ToFloat(halves[i])));
    }
  }
}

TEST_CASE("every variant writes as many elements as it was asked for, from any start") {
  const std::vector<Half> halves = AllHalves();
  for (const InstructionSet set : SetsOfThisMachine()) {
    for (uint64_t count = 0; count <= 70; ++count) {
      for (uint64_t from = 15000; from < 15008; ++from) {
        std::vector<float> widened(count + 2, -7.0F);
        WidenFor(set)(halves.data() + from, count, widened.data() + 1);
        INFO(NameOf(set), " count ", count, " from ", from);
        REQUIRE(widened.front() == -7.0F);
        REQUIRE(widened.back() == -7.0F);
        for (uint64_t i = 0; i < count; ++i) REQUIRE(widened[i + 1] == ToFloat(halves[from + i]));
      }
    }
  }
}

}  // namespace
}  // namespace gnnd
