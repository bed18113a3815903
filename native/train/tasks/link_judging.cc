#include <algorithm>
#include <cmath>

#include "core/metric/link_rank.h"
#include "core/metric/ranking.h"
#include "train/tasks/judging.h"

namespace gnnd {

Status LinkJudging::Reduce(const ReduceTask& task, const Alive& alive) const {
  if (!ranks_ || task.items == 0) return Status::Ok();
  return RankColumns(ScoreTable::In(task.kept, 1), 2 * task.items, task.chunk, task.chunks, alive);
}

Judgement LinkJudging::Judge(const EvalResult& whole, std::span<std::byte> kept) const {
  Metrics metrics;
  const auto links = static_cast<double>(whole.sums.items);
  if (whole.sums.items > 0) {
    metrics[Metric::kMrr] = whole.sums.totals[kReciprocalRanks] / links;
    for (size_t k = 0; k < kNumHitRanks; ++k) {
      metrics[HitsMetric(k)] = static_cast<double>(whole.counts[k]) / links;
    }
    if (ranks_) {
      const Ranking ranking = ScoreTable::In(kept, 1).rankings.front();
      metrics[Metric::kRocAuc] = ranking.roc_auc;
      metrics[Metric::kAveragePrecision] = ranking.average_precision;
    }
  }
  Judgement judgement{QualityOf(whole, metrics), {}};
  std::ranges::copy(metrics.values(), judgement.metrics);
  return judgement;
}

// Counts give fractions, so that equal results tie.
Quality LinkJudging::QualityOf(const EvalResult& whole, const Metrics& metrics) const {
  const double value = metrics[decides_];
  if (std::isnan(value)) return {0, 1};  // nothing to compare: as good as any such epoch
  for (size_t k = 0; k < kNumHitRanks; ++k) {
    if (HitsMetric(k) != decides_) continue;
    return {static_cast<double>(whole.counts[k]), static_cast<double>(whole.sums.items)};
  }
  return {value, 1};
}

}  // namespace gnnd
