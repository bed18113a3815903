#include <algorithm>
#include <array>
#include <cmath>

#include "core/metric/link_rank.h"
#include "core/metric/pool_hits.h"
#include "core/metric/ranking.h"
#include "train/tasks/judging.h"

namespace gnnd {

Status LinkJudging::Reduce(const ReduceTask& task, const Alive& alive) const {
  if (!links_.ranks || task.items == 0) return Status::Ok();
  const ScoreTable table = ScoreTable::In(task.kept, 1);
  const uint64_t entries = links_.pooled ? table.scores.size() : 2 * task.items;
  return RankColumns(table, entries, task.chunk, task.chunks, alive);
}

Judgement LinkJudging::Judge(const EvalResult& whole, std::span<std::byte> kept) const {
  Metrics metrics;
  const uint64_t links = whole.sums.items;
  std::array<uint64_t, kNumHitRanks> hits{};
  // A pool's are in the scores that are kept, if any are.
  const bool has_hits = links > 0 && (links_.ranks || !links_.pooled);
  if (has_hits && links_.pooled) {
    hits = PoolHits(ScoreTable::In(kept, 1));
  } else if (has_hits) {
    std::ranges::copy(std::span(whole.counts).first<kNumHitRanks>(), hits.begin());
    metrics[Metric::kMrr] = whole.sums.totals[kReciprocalRanks] / static_cast<double>(links);
  }
  for (size_t k = 0; has_hits && k < kNumHitRanks; ++k) {
    metrics[HitsMetric(k)] = static_cast<double>(hits[k]) / static_cast<double>(links);
  }
  if (links > 0 && links_.ranks) {
    const Ranking ranking = ScoreTable::In(kept, 1).rankings.front();
    metrics[Metric::kRocAuc] = ranking.roc_auc;
    metrics[Metric::kAveragePrecision] = ranking.average_precision;
  }
  Judgement judgement{QualityOf(hits, links, metrics), {}};
  std::ranges::copy(metrics.values(), judgement.metrics);
  return judgement;
}

// Counts give fractions, so that equal results tie.
Quality LinkJudging::QualityOf(Hits hits, uint64_t links, const Metrics& metrics) const {
  const double value = metrics[links_.decides];
  if (std::isnan(value)) return {0, 1};  // nothing to compare: as good as any such epoch
  for (size_t k = 0; k < kNumHitRanks; ++k) {
    if (HitsMetric(k) != links_.decides) continue;
    return {static_cast<double>(hits[k]), static_cast<double>(links)};
  }
  return {value, 1};
}

}  // namespace gnnd
