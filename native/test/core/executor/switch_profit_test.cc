#include "core/executor/switch_profit.h"

#include <doctest/doctest.h>

#include <limits>

namespace gnnd {

TEST_CASE("the profit of a switch is that of the paper's cases, exactly") {
  // Times in halves, so that 1.5 is an integer.
  CHECK(SwitchProfitNs(10, 2, 5, 3) == 1);
  CHECK(SwitchIsProfitable(10, 2, 5, 3));
  CHECK_FALSE(SwitchIsProfitable(3, 2, 5, 3));
  CHECK(SwitchProfitNs(10, 1, 5, 2) == 0);
  CHECK_FALSE(SwitchIsProfitable(10, 1, 5, 2));  // strict
  // The wake decisions of the paper's timelines.
  CHECK(SwitchProfitNs(7, 4, 1, 5) == 23);
  CHECK(SwitchProfitNs(5, 4, 1, 5) == 15);
  CHECK(SwitchProfitNs(3, 4, 1, 5) == 7);
  CHECK(SwitchProfitNs(4, 3, 2, 4) == 2);
}

TEST_CASE("without normal Trainers a switch always pays") {
  CHECK(SwitchProfitNs(0, 1, 0, 1000) == kInfiniteProfitNs);
  CHECK(SwitchIsProfitable(4, 0, 0, std::numeric_limits<uint64_t>::max()));
}

TEST_CASE("a quotient that is not whole keeps the sign of the exact profit") {
  CHECK(SwitchIsProfitable(10, 1, 3, 3));       // 3.33 - 3
  CHECK_FALSE(SwitchIsProfitable(9, 1, 3, 3));  // 3 - 3
  CHECK_FALSE(SwitchIsProfitable(8, 1, 3, 3));  // 2.67 - 3
}

TEST_CASE("absurd inputs are clamped, not wrapped") {
  constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();
  CHECK(SwitchProfitNs(kHuge, kHuge, 1, 0) == kInfiniteProfitNs - 1);
  CHECK(SwitchProfitNs(0, 1, 1, kHuge) == -(kInfiniteProfitNs - 1));
}

}  // namespace gnnd
