#include "core/ledger/early_stop.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace gnnd {
namespace {

constexpr uint64_t kNodes = 1000;

// The epochs that a job with these accuracies (correct nodes of kNodes) trains, as the segment
// folds them.
size_t EpochsOf(const std::vector<uint64_t>& correct, const EarlyStop& rule) {
  uint64_t reference = 0;
  const auto quality = [&correct](uint64_t e) {
    return Quality{static_cast<double>(correct[e]), kNodes};
  };
  for (size_t e = 0; e < correct.size(); ++e) {
    reference = NextReference(rule, e, quality(e), reference, quality(reference));
    if (StopsAfter(rule, e - reference)) return e + 1;
  }
  return correct.size();
}

// The same in other words: the first epoch at whose end the last `patience` epochs hold none that
// had improved on all that counted before it.
size_t EpochsByDefinition(const std::vector<uint64_t>& correct, const EarlyStop& rule) {
  if (rule.patience == 0) return correct.size();
  std::vector<bool> improved(correct.size());
  for (size_t e = 0; e < correct.size(); ++e) {
    double highest = -1;
    for (size_t before = 0; before < e; ++before) {
      if (improved[before]) highest = std::max(highest, static_cast<double>(correct[before]));
    }
    improved[e] = e == 0 || static_cast<double>(correct[e]) - highest > rule.min_delta * kNodes;
    if (e >= rule.patience &&
        std::none_of(improved.begin() + static_cast<std::ptrdiff_t>(e + 1 - rule.patience),
                     improved.begin() + static_cast<std::ptrdiff_t>(e) + 1,
                     [](bool it) { return it; })) {
      return e + 1;
    }
  }
  return correct.size();
}

std::vector<uint64_t> Draw(std::mt19937_64& random) {
  std::vector<uint64_t> correct(1 + random() % 40);
  const uint64_t spread = 1 + random() % 60;
  uint64_t level = random() % 500;
  for (uint64_t& value : correct) {
    level += random() % 4 == 0 ? random() % 20 : 0;
    value = std::min(kNodes, level + random() % spread);
  }
  return correct;
}

}  // namespace

TEST_CASE("one accuracy exceeds another by more than the margin, exactly without one") {
  CHECK(Exceeds({2, 3}, {1, 3}));
  CHECK_FALSE(Exceeds({1, 3}, {1, 3}));
  CHECK_FALSE(Exceeds({2, 6}, {1, 3}));  // equal shares
  CHECK(Exceeds({33'554'432, 67'108'863}, {33'554'431, 67'108'862}));
  CHECK_FALSE(Exceeds({0, 0}, {0, 0}));
  CHECK_FALSE(Exceeds({75, 100}, {50, 100}, 0.25));
  CHECK(Exceeds({76, 100}, {50, 100}, 0.25));
}

TEST_CASE("without patience no job stops; with it a constant accuracy is waited for that long") {
  const std::vector<uint64_t> constant(50, 700);
  CHECK(EpochsOf(constant, {0, 0.5}) == 50);
  for (const uint32_t patience : {1U, 2U, 7U, 49U}) {
    CHECK(EpochsOf(constant, {patience, 0}) == patience + 1);
  }
  CHECK(EpochsOf(constant, {50, 0}) == 50);
}

TEST_CASE("small gains add up against a margin: the reference moves only when it is exceeded") {
  const std::vector<uint64_t> slow = {500, 506, 512, 518, 524, 530};
  CHECK(EpochsOf(slow, {1, 0.01}) == 2);
  CHECK(EpochsOf(slow, {2, 0.01}) == 6);
  CHECK(EpochsOf(slow, {1, 0}) == 6);
}

TEST_CASE("on random accuracies the rule is its definition, and has its properties") {
  std::mt19937_64 random(20'261'121);
  for (int round = 0; round < 20'000; ++round) {
    INFO("round ", round);
    const std::vector<uint64_t> correct = Draw(random);
    const double margins[] = {0, 0.004, 0.02};
    const EarlyStop rule{static_cast<uint32_t>(random() % 8), margins[random() % 3]};
    const size_t epochs = EpochsOf(correct, rule);
    REQUIRE(epochs == EpochsByDefinition(correct, rule));
    // More patience never stops sooner.
    const EarlyStop patient{rule.patience + 1, rule.min_delta};
    if (rule.patience > 0) REQUIRE(EpochsOf(correct, patient) >= epochs);
    // Nothing that comes after the stop decides it.
    std::vector<uint64_t> other = correct;
    for (size_t e = epochs; e < other.size(); ++e) other[e] = random() % kNodes;
    REQUIRE(EpochsOf(other, rule) == epochs);
    // Without a margin it stops exactly `patience` epochs after the first of the best.
    if (rule.min_delta == 0 && rule.patience > 0 && epochs < correct.size()) {
      const auto end = correct.begin() + static_cast<std::ptrdiff_t>(epochs);
      const auto best = std::max_element(correct.begin(), end) - correct.begin();
      REQUIRE(epochs == static_cast<size_t>(best) + 1 + rule.patience);
    }
  }
}

}  // namespace gnnd
