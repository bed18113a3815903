#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "core/base/status.h"

// Metrics that follow from how an evaluation orders its nodes, not from what it predicts of each:
// area under the ROC curve and average precision, exact, with ties as scikit-learn has them. An
// evaluation that is *ranked* leaves a score of every node and column, and then each column is
// sorted.

namespace gnnd {

// What is known of a node in a column.
enum class Outcome : uint8_t { kNegative = 0, kPositive = 1, kUnknown = 255 };

// What a column comes to. NaN unless it has both a positive and a negative.
struct Ranking {
  double roc_auc;            // share of pairs whose positive is above the negative; ties count half
  double average_precision;  // sum over scores, descending, of precision * gain in recall
};
inline constexpr Ranking kUnranked{std::numeric_limits<double>::quiet_NaN(),
                                   std::numeric_limits<double>::quiet_NaN()};

// The memory that columns are sorted in, kept from one to the next.
class Ranker {
 public:
  // Ranks the entries at, at + stride, ... of both; `count` of them. -0 equals 0; NaN among them
  // gives NaN.
  Ranking Rank(const float* scores, const Outcome* outcomes, uint64_t count, uint64_t stride);

 private:
  std::vector<uint64_t> keys_;  // of a score, ascending as scores do, and the outcome's bit
  std::vector<uint64_t> other_;
};

// Scores of nodes and what is known of them, and what each column comes to.
struct ScoreTable {
  std::span<Ranking> rankings;  // [columns]
  std::span<float> scores;      // [nodes, columns]
  std::span<Outcome> outcomes;  // [nodes, columns]

  // Bytes of a table: for each column, and for each node and column.
  static constexpr uint64_t kColumnBytes = sizeof(Ranking);
  static constexpr uint64_t kEntryBytes = sizeof(float) + sizeof(Outcome);
  // The table of as many nodes as these bytes hold, which start on a cache line.
  static ScoreTable In(std::span<std::byte> bytes, uint64_t columns);
};

// Ranks the columns that are `part` modulo `parts`, of the first `nodes` nodes. Done again, it
// leaves the same. kAborted when `alive` says no; it is asked before each column.
Status RankColumns(const ScoreTable& table, uint64_t nodes, uint32_t part, uint32_t parts,
                   const std::function<bool()>& alive);

// Means over the columns that have both a positive and a negative; NaN where none has.
Ranking MeanOf(std::span<const Ranking> columns);

}  // namespace gnnd
