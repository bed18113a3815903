#include "train/evaluate/link_ranking.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/base/check.h"
#include "core/draw/negatives.h"
#include "core/kernels/rank_loops.h"
#include "core/metric/ranking.h"
#include "train/evaluate/pair_outputs.h"
#include "train/ops/ops.h"
#include "train/ops/parallel.h"
#include "train/tasks/eval_targets.h"
#include "train/tasks/judging.h"

namespace gnnd {
namespace {

constexpr uint32_t kGrainLinks = 64;

}  // namespace

LinkRanking::LinkRanking(const LinkUse& use, const TopologyView& topology, const ModelSpec& spec,
                         uint64_t random_seed)
    : use_(use),
      topology_(topology),
      head_(HeadOf(*spec.head)),
      dim_(spec.out_dim),
      random_seed_(random_seed),
      known_(topology, use.sets, use.symmetric) {}

std::vector<uint32_t> LinkRanking::Drawn(EvalNodes which, uint32_t group, uint32_t count) const {
  const BatchKey key{random_seed_, kLinkEvaluationEpoch + static_cast<uint32_t>(which), group};
  std::vector<uint32_t> nodes(count);
  SharedNegatives(key, topology_.num_nodes(), count, nodes.data());
  return nodes;
}

std::vector<uint32_t> LinkRanking::NodesOf(EvalNodes which) const {
  const LinkSet& set = SetOf(which);
  std::vector<uint32_t> nodes;
  if (set.size() == 0) return nodes;
  NodeSet needed(topology_.num_nodes());
  const auto add = [&needed](std::span<const uint32_t> more) {
    for (const uint32_t node : more) needed.Add(node);
  };
  add(set.ends);
  switch (use_.negatives) {
    case EvaluationNegatives::kKeyed:
      for (uint32_t group = 0; group < NumGroups(which); ++group) {
        add(Drawn(which, group, use_.count));
      }
      break;
    case EvaluationNegatives::kAll:
      for (uint32_t node = 0; node < topology_.num_nodes(); ++node) needed.Add(node);
      break;
    case EvaluationNegatives::kDataset:
    case EvaluationNegatives::kPool:
      add(set.negatives);
      break;
  }
  needed.List(0, topology_.num_nodes(), &nodes);
  return nodes;
}

LinkRanking::Group LinkRanking::GroupOf(EvalNodes which, uint64_t number) const {
  const LinkSet& set = SetOf(which);
  Group group{which, static_cast<uint32_t>(number), {}, {}, {}, {}};
  const uint64_t first = number * kLinkGroup;
  const uint64_t end = std::min(set.size(), first + kLinkGroup);
  for (uint64_t link = first; link < end; ++link) {
    group.sources.push_back(set.source(link));
    group.destinations.push_back(set.destination(link));
  }
  group.standings.resize(group.sources.size());
  return group;
}

Status LinkRanking::Run(const EvalTask& task, uint32_t chunks, const Rows& rows, const Alive& alive,
                        EvalResult* result) {
  const EvalNodes which = task.run.nodes;
  *result = EvalResult{};
  result->counts.resize(kNumHitRanks);
  const uint64_t groups = NumGroups(which);
  for (uint64_t g = groups * task.chunk / chunks; g < groups * (task.chunk + 1) / chunks; ++g) {
    Group group = GroupOf(which, g);
    sources_.Reset();
    switch (use_.negatives) {
      case EvaluationNegatives::kKeyed:
        GNND_TRY(RankDrawn(rows, alive, &group));
        break;
      case EvaluationNegatives::kAll:
        GNND_TRY(RankAmongAll(rows, alive, &group));
        break;
      case EvaluationNegatives::kDataset:
        GNND_TRY(RankAmongGiven(rows, alive, &group));
        break;
      case EvaluationNegatives::kPool:
        GNND_TRY(ScorePool(task, rows, alive, &group));
        break;
    }
    Add(task, group, result);
    result->rows += group.sources.size();
  }
  if (std::isfinite(result->sums.loss)) return Status::Ok();
  return Status(Code::kNumericDivergence, "the validation loss is not finite");
}

uint32_t LinkRanking::BlockNodes(const Group& group) const {
  return RankedBlock(group.sources.size() * head_.CostOfPair(dim_));
}

const float* LinkRanking::Begin(const Rows& rows, std::span<const uint32_t> nodes, Group* group) {
  memory_.Reset();
  const HeadContext kept{rows.head, &sources_};
  group->prepared =
      head_.Prepared(kept, GatheredRows<float>(rows.table, group->sources, &sources_));
  std::vector<uint32_t> all = group->destinations;
  all.insert(all.end(), nodes.begin(), nodes.end());
  const auto* const scores = Scores(rows, all, *group).const_data_ptr<float>();
  const size_t links = group->sources.size();
  // The same products as those of negatives, so that equal rows have equal scores.
  for (size_t i = 0; i < links; ++i) group->standings[i].score = scores[i * links + i];
  return scores + links * links;
}

at::Tensor LinkRanking::Scores(const Rows& rows, std::span<const uint32_t> nodes,
                               const Group& group) {
  const HeadContext at{rows.head, &memory_};
  return head_.RankedBy(at, group.prepared, GatheredRows<float>(rows.table, nodes, &memory_));
}

void LinkRanking::MarkKnown(std::span<const uint32_t> nodes, const Group& group) {
  places_.clear();
  marks_.assign(nodes.size() * group.sources.size(), 0);
  known_.Mark(group.sources, nodes, &marks_, &places_);
}

// Adds the block's nodes to the links' ranks, except those that are marked.
void LinkRanking::CountBlock(const float* scores, uint64_t nodes, Group* group) const {
  const auto links = static_cast<uint32_t>(group->standings.size());
  std::vector<float> own(links);
  std::vector<uint32_t> greater(links);
  std::vector<uint32_t> equal(links);
  for (uint32_t i = 0; i < links; ++i) own[i] = group->standings[i].score;
  const ComparedBlock block{scores, own.data(), nodes, links, greater.data(), equal.data()};
  ParallelRows(links, kGrainLinks, [&block](uint32_t begin, uint32_t end) {
    BestLoops<RankLoops>().compare(block, begin, end);
  });
  for (const uint64_t place : places_) {
    const uint64_t i = place % links;
    greater[i] -= scores[place] > own[i] ? 1U : 0U;
    equal[i] -= scores[place] == own[i] ? 1U : 0U;
  }
  for (uint32_t i = 0; i < links; ++i) {
    group->standings[i].rank.greater += greater[i];
    group->standings[i].rank.equal += equal[i];
  }
}

// Links of a group begin at different nodes of the block, and take the first that is not marked.
void LinkRanking::PickNegatives(const float* scores, uint64_t nodes, Group* group) const {
  const uint64_t links = group->standings.size();
  for (uint64_t i = 0; i < links; ++i) {
    Standing& link = group->standings[i];
    for (uint64_t step = 0; step < nodes && !link.has_negative; ++step) {
      const uint64_t place = (i * nodes / links + step) % nodes * links + i;
      if (marks_[place] != 0) continue;
      link.negative = scores[place];
      link.has_negative = true;
    }
  }
}

Status LinkRanking::RankDrawn(const Rows& rows, const Alive& alive, Group* group) {
  const std::vector<uint32_t> drawn = Drawn(group->which, group->number, use_.count);
  const uint32_t block = BlockNodes(*group);
  for (uint64_t first = 0; first < drawn.size(); first += block) {
    if (!alive()) return EvaluationAborted();
    const auto nodes =
        std::span(drawn).subspan(first, std::min<uint64_t>(block, drawn.size() - first));
    const float* scores = nullptr;
    if (first == 0) {
      scores = Begin(rows, nodes, group);
    } else {
      memory_.Reset();
      scores = Scores(rows, nodes, *group).const_data_ptr<float>();
    }
    MarkKnown(nodes, *group);
    CountBlock(scores, nodes.size(), group);
    if (first == 0) PickNegatives(scores, nodes.size(), group);
  }
  return Status::Ok();
}

Status LinkRanking::RankAmongAll(const Rows& rows, const Alive& alive, Group* group) {
  const std::vector<uint32_t> drawn = Drawn(group->which, group->number, kLinkGroup);
  const float* const few = Begin(rows, drawn, group);
  MarkKnown(drawn, *group);
  PickNegatives(few, drawn.size(), group);
  const uint32_t block = BlockNodes(*group);
  std::vector<uint32_t> nodes;
  for (uint64_t first = 0; first < topology_.num_nodes(); first += block) {
    if (!alive()) return EvaluationAborted();
    memory_.Reset();
    nodes.resize(std::min<uint64_t>(block, topology_.num_nodes() - first));
    std::iota(nodes.begin(), nodes.end(), static_cast<uint32_t>(first));
    const float* const at = rows.table.values<float>().data() + first * dim_;
    const HeadContext context{rows.head, &memory_};
    const at::Tensor scores =
        head_.RankedBy(context, group->prepared,
                       ViewOf(const_cast<float*>(at), static_cast<int64_t>(nodes.size()),
                              static_cast<int64_t>(dim_)));
    MarkKnown(nodes, *group);
    CountBlock(scores.const_data_ptr<float>(), nodes.size(), group);
  }
  return Status::Ok();
}

// The dataset's negatives are a link's own, and all of them count.
Status LinkRanking::RankAmongGiven(const Rows& rows, const Alive& alive, Group* group) {
  const LinkSet& set = SetOf(group->which);
  const uint64_t each = set.negatives.size() / set.size();
  const uint64_t step = std::max<uint64_t>(1, uint64_t{kRankedBlockRows} / (each + 1));
  std::vector<uint32_t> nodes;
  for (uint64_t first = 0; first < group->sources.size(); first += step) {
    if (!alive()) return EvaluationAborted();
    memory_.Reset();
    const auto sources =
        std::span(group->sources).subspan(first, std::min(step, group->sources.size() - first));
    nodes.clear();
    for (uint64_t i = first; i < first + sources.size(); ++i) {
      nodes.push_back(group->destinations[i]);
      const uint64_t link = uint64_t{group->number} * kLinkGroup + i;
      const auto given = set.negatives.subspan(link * each, each);
      nodes.insert(nodes.end(), given.begin(), given.end());
    }
    const at::Tensor scores = head_.OfEach(
        {rows.head, &memory_}, GatheredRows<float>(rows.table, sources, &memory_),
        GatheredRows<float>(rows.table, nodes, &memory_), static_cast<int64_t>(each + 1));
    const auto* row = scores.const_data_ptr<float>();
    for (uint64_t i = first; i < first + sources.size(); ++i, row += each + 1) {
      Standing& link = group->standings[i];
      link.score = row[0];
      link.negative = row[1];
      link.has_negative = true;
      for (uint64_t j = 1; j <= each; ++j) {
        link.rank.greater += row[j] > row[0] ? 1 : 0;
        link.rank.equal += row[j] == row[0] ? 1 : 0;
      }
    }
  }
  return Status::Ok();
}

// Calls take(number, score) for each pair of `ends`, [pairs, 2], in blocks.
template <typename Take>
Status LinkRanking::ScorePairs(const Rows& rows, const Alive& alive, std::span<const uint32_t> ends,
                               const Take& take) {
  const uint64_t pairs = ends.size() / 2;
  for (uint64_t first = 0; first < pairs; first += kRankedBlockRows) {
    if (!alive()) return EvaluationAborted();
    memory_.Reset();
    const uint64_t end = std::min<uint64_t>(pairs, first + kRankedBlockRows);
    const at::Tensor scores =
        OutputsOfPairs(head_, rows, ends.subspan(2 * first, 2 * (end - first)), &memory_);
    const auto* const found = scores.const_data_ptr<float>();
    for (uint64_t pair = first; pair < end; ++pair) take(pair, found[pair - first]);
  }
  return Status::Ok();
}

// A group scores its share of the pool beside its links; the shares together are the pool. The loss
// of a link is with one pair of the share, if it has any.
Status LinkRanking::ScorePool(const EvalTask& task, const Rows& rows, const Alive& alive,
                              Group* group) {
  const LinkSet& set = SetOf(group->which);
  const uint64_t groups = NumGroups(group->which);
  const uint64_t pool = set.negatives.size() / 2;
  const uint64_t first = pool * group->number / groups;
  const uint64_t end = pool * (uint64_t{group->number} + 1) / groups;
  const ScoreTable table = use_.ranks ? ScoreTable::In(task.kept, 1) : ScoreTable{};
  GNND_CHECK(!use_.ranks || set.size() + pool <= table.scores.size());
  const auto own =
      set.ends.subspan(2 * uint64_t{group->number} * kLinkGroup, 2 * group->standings.size());
  GNND_TRY(ScorePairs(rows, alive, own, [group](uint64_t link, float score) {
    group->standings[link].score = score;
  }));
  const auto share = set.negatives.subspan(2 * first, 2 * (end - first));
  GNND_TRY(ScorePairs(rows, alive, share, [&](uint64_t pair, float score) {
    for (uint64_t i = pair; i < group->standings.size(); i += end - first) {
      group->standings[i].negative = score;
      group->standings[i].has_negative = true;
    }
    if (!use_.ranks) return;
    table.scores[set.size() + first + pair] = score;
    table.outcomes[set.size() + first + pair] = Outcome::kNegative;
  }));
  // The other side may have more.
  if (use_.ranks && uint64_t{group->number} + 1 == groups) {
    std::ranges::fill(table.outcomes.subspan(set.size() + pool), Outcome::kUnknown);
  }
  return Status::Ok();
}

void LinkRanking::Add(const EvalTask& task, const Group& group, EvalResult* result) const {
  const ScoreTable table = use_.ranks ? ScoreTable::In(task.kept, 1) : ScoreTable{};
  for (size_t i = 0; i < group.standings.size(); ++i) {
    const Standing& link = group.standings[i];
    ++result->sums.items;
    const bool pooled = use_.negatives == EvaluationNegatives::kPool;
    if (!pooled) CountRank(link.rank, result->counts, &result->sums.totals[kReciprocalRanks]);
    const float scores[] = {link.score, link.negative};
    const size_t known = link.has_negative ? 2 : 1;
    if (task.run.nodes == EvalNodes::kValidation) {
      result->sums.loss += LossOfLink<float>(use_.loss, {{scores, known}, 0, nullptr}, nullptr);
    }
    if (!use_.ranks) continue;
    const uint64_t number = uint64_t{group.number} * kLinkGroup + i;
    if (pooled) {
      table.scores[number] = link.score;
      table.outcomes[number] = Outcome::kPositive;
      continue;
    }
    const uint64_t place = 2 * number;
    GNND_CHECK(place + 1 < table.scores.size());
    std::ranges::copy(scores, table.scores.begin() + static_cast<int64_t>(place));
    table.outcomes[place] = Outcome::kPositive;
    table.outcomes[place + 1] = link.has_negative ? Outcome::kNegative : Outcome::kUnknown;
  }
}

}  // namespace gnnd
