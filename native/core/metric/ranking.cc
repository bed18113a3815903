#include "core/metric/ranking.h"

#include <array>
#include <bit>
#include <cmath>

namespace gnnd {
namespace {

// Grows with the score: floats of one sign are ordered as their bits are.
uint32_t OrderOf(float score) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0F);  // -0 becomes 0
  return (bits >> 31) == 0 ? bits | 0x80000000U : ~bits;
}

// Ascending, by the 33 bits that a key has: three passes, each of which keeps what it finds in
// order.
void SortKeys(std::vector<uint64_t>* keys, std::vector<uint64_t>* other) {
  constexpr uint32_t kBits = 11;
  constexpr uint32_t kPasses = 3;
  constexpr uint64_t kBuckets = uint64_t{1} << kBits;
  std::array<std::array<uint64_t, kBuckets>, kPasses> starts{};
  for (const uint64_t key : *keys) {
    for (uint32_t pass = 0; pass < kPasses; ++pass) {
      ++starts[pass][(key >> (pass * kBits)) % kBuckets];
    }
  }
  other->resize(keys->size());
  for (uint32_t pass = 0; pass < kPasses; ++pass) {
    uint64_t next = 0;
    for (uint64_t& start : starts[pass]) {
      const uint64_t size = start;
      start = next;
      next += size;
    }
    for (const uint64_t key : *keys) {
      (*other)[starts[pass][(key >> (pass * kBits)) % kBuckets]++] = key;
    }
    std::swap(*keys, *other);
  }
}

struct Group {
  uint64_t positives = 0;
  uint64_t negatives = 0;
};

// Those of equal score from `at` on, which moves behind them, downward.
Group NextGroup(const std::vector<uint64_t>& keys, uint64_t* at) {
  Group group;
  const uint64_t score = keys[*at - 1] >> 1;
  for (; *at > 0 && keys[*at - 1] >> 1 == score; --*at) {
    ++((keys[*at - 1] & 1) != 0 ? group.positives : group.negatives);
  }
  return group;
}

}  // namespace

Ranking Ranker::Rank(const float* scores, const Outcome* outcomes, uint64_t count,
                     uint64_t stride) {
  keys_.clear();
  Group all;
  for (uint64_t i = 0; i < count; ++i) {
    const Outcome outcome = outcomes[i * stride];
    if (outcome == Outcome::kUnknown) continue;
    const float score = scores[i * stride];
    if (std::isnan(score)) return kUnranked;
    const bool positive = outcome == Outcome::kPositive;
    keys_.push_back(uint64_t{OrderOf(score)} << 1 | (positive ? 1 : 0));
    ++(positive ? all.positives : all.negatives);
  }
  if (all.positives == 0 || all.negatives == 0) return kUnranked;
  SortKeys(&keys_, &other_);
  // Pairs of which the positive is above, twice, for those that tie count half: 2 * P * N is below
  // 2^64, for there are fewer than 2^32 nodes.
  uint64_t above_twice = 0;
  double precisions = 0;
  Group seen;
  for (uint64_t at = keys_.size(); at > 0;) {
    const Group group = NextGroup(keys_, &at);
    seen.positives += group.positives;
    seen.negatives += group.negatives;
    const uint64_t below = all.negatives - seen.negatives;
    above_twice += group.positives * (2 * below + group.negatives);
    precisions += static_cast<double>(group.positives) * static_cast<double>(seen.positives) /
                  static_cast<double>(seen.positives + seen.negatives);
  }
  const auto positives = static_cast<double>(all.positives);
  return {static_cast<double>(above_twice) / 2 / (positives * static_cast<double>(all.negatives)),
          precisions / positives};
}

ScoreTable ScoreTable::In(std::span<std::byte> bytes, uint64_t columns) {
  const uint64_t entries = (bytes.size() - columns * kColumnBytes) / kEntryBytes;
  std::byte* const scores = bytes.data() + columns * kColumnBytes;
  std::byte* const outcomes = scores + entries * sizeof(float);
  return {{reinterpret_cast<Ranking*>(bytes.data()), columns},
          {reinterpret_cast<float*>(scores), entries},
          {reinterpret_cast<Outcome*>(outcomes), entries}};
}

Status RankColumns(const ScoreTable& table, uint64_t nodes, uint32_t part, uint32_t parts,
                   const std::function<bool()>& alive) {
  const uint64_t columns = table.rankings.size();
  Ranker ranker;
  for (uint64_t column = part; column < columns; column += parts) {
    if (!alive()) return Status(Code::kAborted, "an evaluation was told to stop");
    table.rankings[column] =
        ranker.Rank(table.scores.data() + column, table.outcomes.data() + column, nodes, columns);
  }
  return Status::Ok();
}

Ranking MeanOf(std::span<const Ranking> columns) {
  Ranking sum{0, 0};
  uint64_t counted = 0;
  for (const Ranking& column : columns) {
    if (std::isnan(column.roc_auc)) continue;
    sum.roc_auc += column.roc_auc;
    sum.average_precision += column.average_precision;
    ++counted;
  }
  if (counted == 0) return kUnranked;
  const auto count = static_cast<double>(counted);
  return {sum.roc_auc / count, sum.average_precision / count};
}

}  // namespace gnnd
