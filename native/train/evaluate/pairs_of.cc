#include "train/evaluate/pairs_of.h"

#include <utility>

#include "train/evaluate/known_links.h"
#include "train/evaluate/link_ranking.h"
#include "train/evaluate/pair_scores.h"

namespace gnnd {

std::unique_ptr<Judging> JudgingOf(const LinkUse& use) {
  if (use.labels != nullptr) return std::make_unique<NodeJudging>(use.labels->train);
  return std::make_unique<LinkJudging>(
      LinkJudging::Links{use.decides, use.ranks, use.negatives == EvaluationNegatives::kPool});
}

Result<PairsOfRows> ChoosePairs(const PairsRequest& of) {
  PairsOfRows chosen;
  switch (of.use.question.asks) {
    case LinkAsks::kNothing:
      if (of.use.labels != nullptr) {
        chosen.phase = std::make_unique<KnownLinkLabels>(of.use, of.spec, of.topology.num_nodes());
        break;
      }
      chosen.phase = std::make_unique<LinkRanking>(of.use, of.topology, of.spec, of.random_seed);
      break;
    case LinkAsks::kScores: {
      auto scores = GNND_VALUE(
          PairScores::Open(of.use.question, of.spec, of.topology.num_nodes(), of.folder));
      chosen.files = scores->files();
      chosen.phase = std::move(scores);
      break;
    }
    case LinkAsks::kNearest: {
      auto nearest =
          GNND_VALUE(Nearest::Open(of.use, of.topology, of.spec, of.nearest_of, of.folder));
      chosen.files = nearest->files();
      chosen.phase = std::move(nearest);
      break;
    }
  }
  return chosen;
}

}  // namespace gnnd
