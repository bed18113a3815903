#include "core/graph/alias.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace gnnd {
namespace {

constexpr uint64_t kSlot = uint64_t{1} << 32;

std::vector<AliasEntry> Table(const std::vector<float>& weights) {
  std::vector<AliasEntry> row(weights.size());
  AliasBuilder().Build(weights, row.data());
  return row;
}

// The share that the table gives each position, in slots.
std::vector<double> ShareOf(const std::vector<AliasEntry>& row) {
  std::vector<double> share(row.size(), 0);
  for (uint32_t slot = 0; slot < row.size(); ++slot) {
    const uint64_t own = row[slot].alias == slot ? kSlot : row[slot].threshold;
    share[slot] += static_cast<double>(own) / kSlot;
    share[row[slot].alias] += static_cast<double>(kSlot - own) / kSlot;
  }
  return share;
}

TEST_CASE("an alias table gives every entry its weight's share") {
  std::mt19937_64 random(7);
  for (const size_t size : {1UL, 2UL, 3UL, 10UL, 100UL, 5000UL}) {
    CAPTURE(size);
    std::vector<float> weights(size);
    double sum = 0;
    for (float& weight : weights) {
      weight = random() % 4 == 0 ? 0.0F : static_cast<float>(random() % 1000 + 1) * 0.001F;
      sum += weight;
    }
    if (sum == 0) continue;
    const std::vector<double> share = ShareOf(Table(weights));
    for (size_t i = 0; i < size; ++i) {
      const double expected = weights[i] / sum * static_cast<double>(size);
      CHECK(share[i] == doctest::Approx(expected).epsilon(1e-5));
      if (weights[i] == 0) CHECK(share[i] == 0);
    }
  }
}

TEST_CASE("threshold 0 says weight 0, and nothing else does") {
  const std::vector<float> tiny = {
      0, std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::max(), 1, 0, 1, 1, 0,
      2};
  const std::vector<AliasEntry> row = Table(tiny);
  for (size_t i = 0; i < tiny.size(); ++i) CHECK((row[i].threshold == 0) == (tiny[i] == 0));
}

TEST_CASE("equal weights fill every slot with itself") {
  for (const AliasEntry& entry : Table({3, 3, 3, 3, 3})) {
    CHECK(entry.threshold == std::numeric_limits<uint32_t>::max());
  }
}

TEST_CASE("a row without weight leads nowhere") {
  const std::vector<AliasEntry> row = Table({0, 0, 0});
  for (uint32_t i = 0; i < 3; ++i) {
    CHECK(row[i].threshold == 0);
    CHECK(row[i].alias == i);
  }
}

TEST_CASE("the bits of a table are those frozen in alias.h") {
  // q = 715827882, 1431655765, 2147483648, 0; T = 4294967295; four times q is placed.
  const std::vector<AliasEntry> row = Table({1, 2, 3, 0});
  CHECK(row[3].threshold == 0);
  CHECK(row[3].alias == 2);
  CHECK(row[0].threshold == 2863311528);
  CHECK(row[0].alias == 2);
  CHECK(row[2].threshold == 2863311530);
  CHECK(row[2].alias == 1);
  CHECK(row[1].threshold == std::numeric_limits<uint32_t>::max());
  CHECK(row[1].alias == 1);
}

}  // namespace
}  // namespace gnnd
