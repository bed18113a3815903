#include "core/vec/convert.h"

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

TEST_CASE("every variant widens every float16 to the same bits") {
  const std::vector<Half> halves = AllHalves();
  for (const InstructionSet set : AvailableInstructionSets()) {
    std::vector<float> widened(halves.size());
    LoopsFor<ConvertLoops>(set).widen_half(halves.data(), halves.size(), widened.data());
    for (size_t i = 0; i < halves.size(); ++i) {
      CAPTURE(i);
      INFO(NameOf(set));
      REQUIRE(std::bit_cast<uint32_t>(widened[i]) == std::bit_cast<uint32_t>(ToFloat(halves[i])));
    }
  }
}

TEST_CASE("every variant writes as many elements as it was asked for, from any start") {
  const std::vector<Half> halves = AllHalves();
  for (const InstructionSet set : AvailableInstructionSets()) {
    for (uint64_t count = 0; count <= 70; ++count) {
      for (uint64_t from = 15000; from < 15008; ++from) {
        std::vector<float> widened(count + 2, -7.0F);
        LoopsFor<ConvertLoops>(set).widen_half(halves.data() + from, count, widened.data() + 1);
        INFO(NameOf(set), " count ", count, " from ", from);
        REQUIRE(widened.front() == -7.0F);
        REQUIRE(widened.back() == -7.0F);
        for (uint64_t i = 0; i < count; ++i) REQUIRE(widened[i + 1] == ToFloat(halves[from + i]));
      }
    }
  }
}

// All float16 numbers, and the float32 numbers that rounding can get wrong: halves between two
// bfloat16s and their neighbours, the largest numbers, infinities and NaNs of both signs.
std::vector<float> TrickyFloats() {
  std::vector<float> floats;
  for (uint32_t upper = 0; upper < 65536; ++upper) {
    for (const uint32_t lower : {0x0000U, 0x0001U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
      floats.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  return floats;
}

TEST_CASE("every variant narrows to the nearest bfloat16, and widens back exactly") {
  const std::vector<float> floats = TrickyFloats();
  for (const InstructionSet set : AvailableInstructionSets()) {
    INFO(NameOf(set));
    std::vector<Bfloat16> narrow(floats.size());
    std::vector<float> back(floats.size());
    LoopsFor<ConvertLoops>(set).narrow(floats.data(), floats.size(), narrow.data());
    LoopsFor<ConvertLoops>(set).widen_bfloat16(narrow.data(), narrow.size(), back.data());
    for (size_t i = 0; i < floats.size(); ++i) {
      CAPTURE(i);
      REQUIRE(narrow[i] == ToBfloat16(floats[i]));
      REQUIRE(std::bit_cast<uint32_t>(back[i]) == static_cast<uint32_t>(narrow[i]) << 16);
    }
  }
}

TEST_CASE("rounding to bfloat16 is to the nearest, ties to even, as the definition says") {
  for (const float value : TrickyFloats()) {
    const Bfloat16 rounded = ToBfloat16(value);
    if (std::isnan(value)) {
      REQUIRE(std::isnan(ToFloat(rounded)));
      continue;
    }
    const auto bits = std::bit_cast<uint32_t>(value);
    const double below = static_cast<double>(std::bit_cast<float>(bits & 0xFFFF0000U));
    const double above = static_cast<double>(std::bit_cast<float>((bits & 0xFFFF0000U) + 0x10000U));
    if (!std::isfinite(above)) continue;  // a number beyond the largest has no distance
    const double to_below = std::abs(static_cast<double>(value) - below);
    const double to_above = std::abs(above - static_cast<double>(value));
    const bool even = (bits >> 16) % 2 == 0;
    const bool down = to_below < to_above || (to_below == to_above && even);
    REQUIRE(static_cast<double>(ToFloat(rounded)) == (down ? below : above));
  }
}

TEST_CASE("float16 is narrowed as its float32 is, and no element beyond the last is touched") {
  const std::vector<Half> halves = AllHalves();
  for (const InstructionSet set : AvailableInstructionSets()) {
    INFO(NameOf(set));
    for (uint64_t count = 0; count <= 70; ++count) {
      std::vector<Bfloat16> narrow(count + 2, Bfloat16{7});
      LoopsFor<ConvertLoops>(set).narrow_half(halves.data() + 15000, count, narrow.data() + 1);
      REQUIRE(narrow.front() == Bfloat16{7});
      REQUIRE(narrow.back() == Bfloat16{7});
      for (uint64_t i = 0; i < count; ++i) {
        REQUIRE(narrow[i + 1] == ToBfloat16(ToFloat(halves[15000 + i])));
      }
    }
  }
}

}  // namespace
}  // namespace gnnd
