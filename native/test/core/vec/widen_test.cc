#include "core/vec/widen.h"

#include <doctest/doctest.h>

#include <bit>
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
    LoopsFor<WidenLoops>(set).widen(halves.data(), halves.size(), widened.data());
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
        LoopsFor<WidenLoops>(set).widen(halves.data() + from, count, widened.data() + 1);
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
