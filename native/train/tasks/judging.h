#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/status.h"
#include "core/executor/train_work.h"
#include "core/metric/metric.h"
#include "train/tasks/node_targets.h"

namespace gnnd {

// What becomes of a whole evaluation, with the functions of TrainWork.
class Judging {
 public:
  virtual ~Judging() = default;
  virtual Status Reduce(const ReduceTask& task, const Alive& alive) const = 0;
  virtual Judgement Judge(const EvalResult& whole, std::span<std::byte> kept) const = 0;
};

// Of nodes. Borrows their targets.
class NodeJudging final : public Judging {
 public:
  explicit NodeJudging(const NodeTargets& targets) : targets_(targets) {}
  Status Reduce(const ReduceTask& task, const Alive& alive) const override {
    return ReduceScores(targets_, task, alive);
  }
  Judgement Judge(const EvalResult& whole, std::span<std::byte> kept) const override {
    return JudgementOf(targets_, whole, kept);
  }

 private:
  const NodeTargets& targets_;
};

// Where an evaluation of links adds up 1 / rank, among the totals of a TaskSums. Its counts are
// those of links found (core/metric/link_rank.h), its kept bytes a ScoreTable of one column, with
// the score of each link and that of one of its negatives behind it. Of links that share a pool it
// adds up and counts nothing, and the table has the links, then the pool, then unknown ones.
inline constexpr size_t kReciprocalRanks = 0;

class LinkJudging final : public Judging {
 public:
  struct Links {
    Metric decides;
    bool ranks;   // scores are kept
    bool pooled;  // they share a pool of negatives
  };
  explicit LinkJudging(const Links& links) : links_(links) {}
  Status Reduce(const ReduceTask& task, const Alive& alive) const override;
  Judgement Judge(const EvalResult& whole, std::span<std::byte> kept) const override;

 private:
  using Hits = std::span<const uint64_t>;  // [kNumHitRanks]
  Quality QualityOf(Hits hits, uint64_t links, const Metrics& metrics) const;

  const Links links_;
};

}  // namespace gnnd
