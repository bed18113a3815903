#include "core/draw/permutation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/item/permute.h"

namespace gnnd {
namespace {

std::vector<uint32_t> Permutation(uint64_t random_seed, uint32_t epoch, uint32_t n) {
  std::vector<uint32_t> values(n);
  for (uint32_t i = 0; i < n; ++i) values[i] = PermutedIndex(KeyOf(random_seed), epoch, n, i);
  return values;
}

bool IsBijection(const std::vector<uint32_t>& values) {
  std::vector<bool> seen(values.size(), false);
  for (const uint32_t value : values) {
    if (value >= values.size() || seen[value]) return false;
    seen[value] = true;
  }
  return true;
}

TEST_CASE("the keyed permutation is a bijection for every size") {
  for (uint32_t n = 1; n <= 1100; ++n) {
    CAPTURE(n);
    REQUIRE(IsBijection(Permutation(n * 31, n % 7, n)));
  }
  for (const uint32_t n : {4095U, 4096U, 4097U, 65'536U, 65'537U, 100'003U}) {
    CAPTURE(n);
    REQUIRE(IsBijection(Permutation(5, 0, n)));
  }
}

TEST_CASE("the largest sizes stay in range") {
  for (const uint32_t n : {0xFFFFFFFFU, 0x80000001U}) {
    for (uint32_t i = 0; i < 1000; ++i) {
      REQUIRE(PermutedIndex(KeyOf(i), 1, n, n - 1 - i) < n);
    }
  }
}

TEST_CASE("another epoch or random seed gives another order") {
  const auto order = Permutation(1, 0, 1000);
  for (const auto& other : {Permutation(1, 1, 1000), Permutation(2, 0, 1000),
                            Permutation(uint64_t{1} << 32 | 1, 0, 1000)}) {
    uint32_t equal = 0;
    for (uint32_t i = 0; i < 1000; ++i) equal += order[i] == other[i] ? 1 : 0;
    // Two random permutations agree in one place on average; in 12 with probability below 1e-9.
    CHECK(equal < 12);
  }
}

// Chi-square over all n! orders; `limit` is the 1 - 1e-6 quantile for n! - 1 degrees of freedom.
void CheckOrdersUniform(uint32_t n, uint32_t num_orders, double limit) {
  constexpr uint32_t kPerOrder = 200;
  std::vector<uint32_t> count(n == 3 ? 27 : 256, 0);
  for (uint32_t seed = 0; seed < num_orders * kPerOrder; ++seed) {
    uint32_t code = 0;
    for (const uint32_t value : Permutation(seed, seed % 3, n)) code = code * n + value;
    ++count[code];
  }
  double chi_square = 0;
  uint32_t orders = 0;
  for (const uint32_t times : count) {
    if (times == 0) continue;
    ++orders;
    const double off = static_cast<double>(times) - kPerOrder;
    chi_square += off * off / kPerOrder;
  }
  CHECK(orders == num_orders);
  CHECK(chi_square < limit);
}

TEST_CASE("orders of three and four are uniform over random seeds (level 1e-6)") {
  CheckOrdersUniform(3, 6, 35.89);
  CheckOrdersUniform(4, 24, 70.55);
}

TEST_CASE("every node is equally likely in every place (level 1e-6)") {
  constexpr uint32_t kNodes = 50;
  constexpr uint32_t kSeeds = 4000;
  std::vector<uint32_t> count(kNodes * kNodes, 0);
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    const auto order = Permutation(seed, 2, kNodes);
    for (uint32_t place = 0; place < kNodes; ++place) ++count[place * kNodes + order[place]];
  }
  double chi_square = 0;
  constexpr double kExpected = double{kSeeds} / kNodes;
  for (const uint32_t times : count) {
    chi_square += (times - kExpected) * (times - kExpected) / kExpected;
  }
  // 49 * 49 degrees of freedom: mean 2401, standard deviation 69; 4.75 deviations is 1e-6.
  CHECK(chi_square < 2401 + 4.9 * 69.3);
  CHECK(chi_square > 2401 - 4.9 * 69.3);
}

// Ranges of positions as one by one; nothing is written behind them.
void CheckRange(const PermuteLoops& loops, uint64_t random_seed, uint32_t epoch, uint32_t n,
                uint32_t first, uint32_t count) {
  constexpr uint32_t kUntouched = 0xABCD1234;
  std::vector<uint32_t> out(count + 1, kUntouched);
  loops.permute(KeyOf(random_seed), epoch, n, first, count, out.data());
  CHECK(out.back() == kUntouched);
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < count; ++i) {
    wrong += out[i] == PermutedIndex(KeyOf(random_seed), epoch, n, first + i) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("every instruction set permutes a range as one position after the other") {
  for (const InstructionSet set : AvailableInstructionSets()) {
    CAPTURE(NameOf(set));
    const auto& loops = LoopsFor<PermuteLoops>(set);
    for (uint32_t n = 1; n <= 150; ++n) {
      CAPTURE(n);
      CheckRange(loops, n, n % 5, n, 0, n);
      CheckRange(loops, n, 0, n, n / 3, n - n / 3);
    }
    // 4^8 + 1 has the longest walks; the largest sizes have no domain around them.
    for (const uint32_t n :
         {1024U, 65'535U, 65'536U, 65'537U, 1'000'003U, 0x80000001U, 0xFFFFFFFFU}) {
      CAPTURE(n);
      for (const uint32_t count : {1U, 15U, 16U, 17U, 33U, 1000U, 1023U, 1024U}) {
        CheckRange(loops, 0x0123456789ABCDEF, 0xFFFFFE, n, 0, count);
        CheckRange(loops, 0x0123456789ABCDEF, 7, n, n - count, count);
      }
    }
    CheckRange(loops, 1, 2, 65'537, 60'000, 5'000);
  }
}

TEST_CASE("the permutation is the frozen one") {
  CHECK(Permutation(0x0123456789ABCDEF, 3, 10) ==
        std::vector<uint32_t>{7, 1, 6, 4, 9, 0, 2, 8, 5, 3});
}

}  // namespace
}  // namespace gnnd
