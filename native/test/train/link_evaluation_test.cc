#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "core/draw/negatives.h"
#include "core/executor/eval_scratch.h"
#include "core/metric/link_rank.h"
#include "core/metric/ranking.h"
#include "link_data.h"
#include "train/evaluate/link_ranking.h"
#include "train/work/torch_work.h"

// Evaluations of links beside one that compares a pair at a time.

namespace gnnd {
namespace {

using test::LinkData;

const Alive kAlive = [] { return true; };

std::unique_ptr<TorchWork> WorkOf(const TrainOptions& options) {
  auto created = TorchWork::Create(options);
  REQUIRE(created.ok());
  return std::move(*created);
}

// What Trainers share beside the chunks' results.
struct Shared {
  explicit Shared(const TrainOptions& options)
      : kept(ScoreTable::kColumnBytes +
             std::max(EntriesOf(options.links->sets[0]), EntriesOf(options.links->sets[1])) *
                 ScoreTable::kEntryBytes) {
    const EvalLayout layout = EvalLayout::Of(options.model, options.num_nodes());
    auto made = EvalScratch::Create(layout.total_bytes + layout.kept_bytes, "");
    REQUIRE(made.ok());
    scratch = std::move(*made);
  }
  // Of each link one negative, or the pool of all.
  static uint64_t EntriesOf(const LinkSet& set) {
    return set.size() + std::max<uint64_t>(set.size(), set.negatives.size() / 2);
  }

  UniqueFd scratch;
  std::vector<std::byte> kept;
};

struct Evaluated {
  EvalResult whole;
  Judgement judgement{};

  double operator[](Metric metric) const { return judgement.metrics[static_cast<size_t>(metric)]; }
};

// Evaluates by all of `works`, which take chunks in an order of their own.
Evaluated Evaluate(const std::vector<TorchWork*>& works, EvalNodes nodes,
                   const std::vector<float>& parameters, uint64_t seed, Shared* shared) {
  std::mt19937_64 random(seed);
  EvalShape shape;
  for (TorchWork* work : works) {
    auto planned = work->PlanEvaluation(nodes, kAlive);
    REQUIRE(planned.ok());
    shape = planned->Reducing();
  }
  std::vector<EvalResult> results(shape.chunks);
  EvalTask task;
  task.run.nodes = nodes;
  task.kept = shared->kept;
  uint64_t items = 0;
  for (task.phase = 0; task.phase < shape.phases; ++task.phase) {
    std::vector<uint32_t> order(shape.chunks);
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::shuffle(order, random);
    for (const uint32_t chunk : order) {
      TorchWork& work = *works[random() % works.size()];
      task.chunk = chunk;
      if (shape.Reduces(task.phase)) {
        REQUIRE(work.Reduce({shared->kept, items, chunk, shape.chunks}, kAlive).ok());
        continue;
      }
      EvalResult result;
      REQUIRE(work.EvaluateChunk(task, {1, 0, parameters}, kAlive, &result).ok());
      items += result.sums.items;
      if (result.sums.items > 0) results[chunk] = result;
    }
  }
  Evaluated evaluated;
  for (const EvalResult& result : results) {
    if (result.sums.items > 0) evaluated.whole.Add(result.sums, result.counts);
  }
  evaluated.judgement = works[0]->Judge(evaluated.whole, shared->kept);
  return evaluated;
}

std::vector<float> InitialParameters(TorchWork& work) {
  std::vector<float> parameters(work.manifest().num_floats);
  work.InitParameters(parameters);
  return parameters;
}

// Evaluations by one Trainer, or several beside each other, of initial parameters.
Evaluated Evaluate(TrainOptions options, EvalNodes nodes, uint32_t trainers, uint32_t threads) {
  Shared shared(options);
  options.eval_place.fd = shared.scratch.get();
  options.threads = threads;
  std::vector<std::unique_ptr<TorchWork>> works;
  std::vector<TorchWork*> each;
  for (uint32_t i = 0; i < trainers; ++i) {
    works.push_back(WorkOf(options));
    each.push_back(works.back().get());
  }
  return Evaluate(each, nodes, InitialParameters(*each[0]), trainers * 10 + threads, &shared);
}

// Whether a destination is no negative of a link, looked up in the data as they are.
bool IsKnown(const LinkData& data, uint32_t source, uint32_t destination) {
  if (source == destination) return true;
  const TopologyView graph = data.graph.view();
  const auto row = graph.indices.subspan(graph.indptr[destination], graph.degree(destination));
  if (std::ranges::find(row, source) != row.end()) return true;
  for (const LinkSet& set : data.use.sets) {
    for (uint64_t link = 0; link < set.size(); ++link) {
      const bool there = set.source(link) == source && set.destination(link) == destination;
      const bool back = set.source(link) == destination && set.destination(link) == source;
      if (there || (data.use.symmetric && back)) return true;
    }
  }
  return false;
}

// The destinations that a link is ranked among.
std::vector<uint32_t> RivalsOf(const LinkData& data, EvalNodes which, uint64_t link) {
  const LinkUse& use = data.use;
  const LinkSet& set = use.sets[static_cast<uint32_t>(which)];
  std::vector<uint32_t> rivals;
  if (use.negatives == EvaluationNegatives::kDataset) {
    const uint64_t each = set.negatives.size() / set.size();
    const auto given = set.negatives.subspan(link * each, each);
    return {given.begin(), given.end()};
  }
  const BatchKey key{17, kLinkEvaluationEpoch + static_cast<uint32_t>(which),
                     static_cast<uint32_t>(link / kLinkGroup)};
  const bool all = use.negatives == EvaluationNegatives::kAll;
  for (uint32_t i = 0; i < (all ? data.num_nodes() : use.count); ++i) {
    const uint32_t node = all ? i : NegativeDraw(key, 0, i, 0, data.num_nodes());
    if (!IsKnown(data, set.source(link), node)) rivals.push_back(node);
  }
  return rivals;
}

// The rows of all nodes.
std::vector<float> RowsOf(const TrainOptions& options) {
  const auto work = WorkOf(options);
  std::vector<uint32_t> nodes(options.num_nodes());
  std::iota(nodes.begin(), nodes.end(), 0U);
  std::vector<float> rows;
  const auto append = [&](std::span<const uint32_t> part, const float* values) {
    rows.insert(rows.end(), values, values + part.size() * options.model.out_dim);
    return Status::Ok();
  };
  REQUIRE(work->Predict(InitialParameters(*work), nodes, kAlive, append).ok());
  return rows;
}

// Scores by scalar products alone, one after the other.
double DotOf(const std::vector<float>& rows, uint32_t dim, uint32_t source, uint32_t destination) {
  double sum = 0;
  for (uint32_t c = 0; c < dim; ++c) {
    sum += double{rows[uint64_t{source} * dim + c]} * double{rows[uint64_t{destination} * dim + c]};
  }
  return sum;
}

// Rounding may turn the order of two scores that are this close.
constexpr double kClose = 1e-4;

void CheckAgainstPairs(const LinkData& data, const TrainOptions& options, EvalNodes which) {
  const LinkSet& set = data.use.sets[static_cast<uint32_t>(which)];
  const std::vector<float> rows = RowsOf(options);
  double least = 0;  // of the sum of 1 / rank
  double most = 0;
  for (uint64_t link = 0; link < set.size(); ++link) {
    const auto score = [&](uint32_t destination) {
      return DotOf(rows, options.model.out_dim, set.source(link), destination);
    };
    const double own = score(set.destination(link));
    LinkRank best;
    LinkRank worst;
    for (const uint32_t node : RivalsOf(data, which, link)) {
      const double rival = score(node);
      best.greater += rival > own + kClose ? 1 : 0;
      worst.greater += rival > own - kClose ? 1 : 0;
    }
    least += 1 / worst.rank();
    most += 1 / best.rank();
  }
  const Evaluated found = Evaluate(options, which, 1, 1);
  CHECK(found.whole.sums.items == set.size());
  const auto links = static_cast<double>(set.size());
  CHECK(found[Metric::kMrr] >= least / links);
  CHECK(found[Metric::kMrr] <= most / links);
  CHECK(found[Metric::kHits1] < found[Metric::kHits10]);
  CHECK(found[Metric::kHits10] <= found[Metric::kHits100]);
  CHECK(found[Metric::kRocAuc] > 0.5);  // features tell groups apart before anything is learnt
  CHECK(found[Metric::kAveragePrecision] > 0.5);
}

constexpr EvaluationNegatives kKinds[] = {EvaluationNegatives::kKeyed, EvaluationNegatives::kAll,
                                          EvaluationNegatives::kDataset};

// Negatives as a dataset brings them.
std::vector<uint32_t> Given(uint64_t links, uint32_t each, uint32_t num_nodes) {
  std::mt19937 random(static_cast<uint32_t>(links));
  std::vector<uint32_t> negatives(links * each);
  for (uint32_t& node : negatives) node = static_cast<uint32_t>(random() % num_nodes);
  return negatives;
}

}  // namespace

TEST_CASE("links are ranked as a comparison of one pair after the other ranks them") {
  for (const bool symmetric : {true, false}) {
    LinkData data(700, 12, symmetric, 4);
    data.use.count = 90;
    data.use.ranks = true;
    std::vector<uint32_t> negatives[2];
    for (uint32_t which = 0; which < 2; ++which) {
      negatives[which] = Given(data.use.sets[which].size(), 40, data.num_nodes());
      data.use.sets[which].negatives = negatives[which];
    }
    const TrainOptions options = data.Options(ModelType::kGraphSage, LinkHead::kDot);
    for (const EvaluationNegatives kind : kKinds) {
      CAPTURE(symmetric);
      CAPTURE(static_cast<int>(kind));
      data.use.negatives = kind;
      CheckAgainstPairs(data, options, EvalNodes::kValidation);
      CheckAgainstPairs(data, options, EvalNodes::kTest);
    }
  }
}

TEST_CASE("no bit of an evaluation of links depends on who does what, or on threads") {
  LinkData data(2600, 12, true, 6);
  data.use.count = 50;
  data.use.ranks = true;
  std::vector<uint32_t> negatives = Given(data.use.sets[0].size(), 9, data.num_nodes());
  data.use.sets[0].negatives = negatives;
  for (const LinkHead head : {LinkHead::kDot, LinkHead::kMlp, LinkHead::kCosine}) {
    for (const EvaluationNegatives kind : kKinds) {
      if (head == LinkHead::kMlp && kind == EvaluationNegatives::kAll) continue;  // takes long
      CAPTURE(static_cast<int>(head));
      CAPTURE(static_cast<int>(kind));
      data.use.negatives = kind;
      if (kind == EvaluationNegatives::kDataset) data.use.sets[1] = {};
      const TrainOptions options = data.Options(ModelType::kGraphSage, head);
      const Evaluated alone = Evaluate(options, EvalNodes::kValidation, 1, 1);
      CHECK(alone.whole.sums.items == data.use.sets[0].size());
      CHECK(std::isfinite(alone.whole.sums.loss));
      for (const auto& [trainers, threads] : {std::pair(3U, 1U), std::pair(1U, 3U)}) {
        const Evaluated other = Evaluate(options, EvalNodes::kValidation, trainers, threads);
        CHECK(other.whole.counts == alone.whole.counts);
        CHECK(other.whole.sums.loss == alone.whole.sums.loss);
        CHECK(std::ranges::equal(
            std::span(other.judgement.metrics).first(kNumMetrics),
            std::span(alone.judgement.metrics).first(kNumMetrics),
            [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }));
      }
      data.use.sets[1].ends = data.test;
    }
  }
}

TEST_CASE("links of a pool are found as one pair after the other finds them") {
  for (const LinkHead head : {LinkHead::kDot, LinkHead::kMlp}) {
    LinkData data(2600, 12, true, 9);
    data.use.ranks = true;
    data.use.negatives = EvaluationNegatives::kPool;
    // One pool has more than the other, and one less than there are links.
    const std::vector<uint32_t> few = Given(90, 2, data.num_nodes());
    const std::vector<uint32_t> many = Given(9000, 2, data.num_nodes());
    data.use.sets[0].negatives = many;
    data.use.sets[1].negatives = few;
    const TrainOptions options = data.Options(ModelType::kGraphSage, head);
    const std::vector<float> rows = RowsOf(options);
    // The larger one first, whose scores are there while the smaller one is judged.
    Shared shared(options);
    TrainOptions placed = options;
    placed.eval_place.fd = shared.scratch.get();
    const auto work = WorkOf(placed);
    const std::vector<float> parameters = InitialParameters(*work);
    for (const EvalNodes which : {EvalNodes::kValidation, EvalNodes::kTest}) {
      const LinkSet& set = data.use.sets[static_cast<uint32_t>(which)];
      const Evaluated found = Evaluate({work.get()}, which, parameters, 5, &shared);
      CHECK(std::isnan(found[Metric::kMrr]));
      CHECK(found.whole.sums.items == set.size());
      for (const auto& [trainers, threads] : {std::pair(3U, 1U), std::pair(1U, 3U)}) {
        const Evaluated other = Evaluate(options, which, trainers, threads);
        CHECK(other.whole.sums.loss == found.whole.sums.loss);
        for (const Metric metric : {Metric::kHits1, Metric::kHits50, Metric::kHits100,
                                    Metric::kRocAuc, Metric::kAveragePrecision}) {
          CHECK(other[metric] == found[metric]);
        }
      }
      if (head != LinkHead::kDot) continue;
      std::vector<double> pool;
      for (uint64_t i = 0; i < set.negatives.size(); i += 2) {
        pool.push_back(DotOf(rows, 16, set.negatives[i], set.negatives[i + 1]));
      }
      std::ranges::sort(pool, std::greater());
      for (size_t k = 0; k < kNumHitRanks; ++k) {
        double least = 0;
        double most = 0;
        for (uint64_t link = 0; link < set.size(); ++link) {
          const double own = DotOf(rows, 16, set.source(link), set.destination(link));
          const bool all = pool.size() < kHitRanks[k];
          least += all || own > pool[kHitRanks[k] - 1] + kClose ? 1 : 0;
          most += all || own > pool[kHitRanks[k] - 1] - kClose ? 1 : 0;
        }
        const double hits = found[HitsMetric(k)] * static_cast<double>(set.size());
        CHECK(hits >= least - 0.5);
        CHECK(hits <= most + 0.5);
      }
      CHECK(found[Metric::kHits1] < found[Metric::kHits50]);
    }
  }
}

TEST_CASE("nodes with equal rows tie, whichever is the link") {
  // All nodes are alike: every negative ties, and a link is in the middle of them.
  LinkData data(300, 8, true, 8);
  data.graph = test::GraphOf(std::vector<std::vector<uint32_t>>(300));
  std::ranges::fill(data.features, 0.7F);
  data.use.count = 30;
  for (const LinkHead head : {LinkHead::kDot, LinkHead::kBilinear, LinkHead::kMlp}) {
    CAPTURE(static_cast<int>(head));
    data.use.negatives = EvaluationNegatives::kKeyed;
    const Evaluated keyed =
        Evaluate(data.Options(ModelType::kGraphSage, head), EvalNodes::kTest, 1, 1);
    CHECK(keyed[Metric::kHits1] == 0);
    CHECK(keyed[Metric::kHits20] == 1);
    CHECK(keyed[Metric::kMrr] > 2.0 / (30 + 2));
    CHECK(keyed[Metric::kMrr] < 2.0 / (24 + 2));
  }
}

TEST_CASE("test links are told along a graph of their own, and validation links are not") {
  for (const ModelType type : {ModelType::kGraphSage, ModelType::kGcn, ModelType::kGatV2}) {
    CAPTURE(static_cast<int>(type));
    LinkData data(700, 12, true, 4);
    data.use.count = 60;
    data.use.ranks = true;
    const TrainOptions options = data.Options(type, LinkHead::kDot);
    // The graph with validation links.
    std::vector<std::vector<uint32_t>> rows(data.num_nodes());
    for (uint32_t v = 0; v < data.num_nodes(); ++v) {
      const TopologyView graph = data.graph.view();
      const auto row = graph.indices.subspan(graph.indptr[v], graph.degree(v));
      rows[v].assign(row.begin(), row.end());
    }
    const LinkSet& val = data.use.sets[0];
    for (uint64_t link = 0; link < val.size(); ++link) {
      rows[val.source(link)].push_back(val.destination(link));
      rows[val.destination(link)].push_back(val.source(link));
    }
    for (auto& row : rows) {
      std::ranges::sort(row);
      row.erase(std::unique(row.begin(), row.end()), row.end());
    }
    const test::TestGraph wider = test::GraphOf(rows);
    // Both sides by one Trainer, so that what it keeps of one is there for the other. Known pairs
    // are the same with either graph.
    const auto both = [&](const TrainOptions& by) {
      Shared shared(by);
      TrainOptions placed = by;
      placed.eval_place.fd = shared.scratch.get();
      const auto work = WorkOf(placed);
      const std::vector<float> parameters = InitialParameters(*work);
      std::vector<double> found;
      for (const EvalNodes which :
           {EvalNodes::kValidation, EvalNodes::kTest, EvalNodes::kValidation}) {
        const Evaluated evaluated = Evaluate({work.get()}, which, parameters, 3, &shared);
        found.push_back(evaluated[Metric::kMrr]);
        found.push_back(evaluated[Metric::kRocAuc]);
      }
      return found;
    };
    const auto alone = both(options);
    data.use.test_messages = TestMessages{wider.view()};
    const auto other = both(options);
    data.use.test_messages.reset();
    TrainOptions along = options;
    along.topology = wider.view();
    const auto whole = both(along);
    CHECK(other == std::vector<double>{alone[0], alone[1], whole[2], whole[3], alone[4], alone[5]});
    CHECK(alone[2] != whole[2]);
    CHECK(alone[0] != whole[0]);
  }
}

TEST_CASE("bad links to evaluate are refused, and none are no evaluation") {
  LinkData data(100, 8, true, 2);
  TrainOptions options = data.Options(ModelType::kGraphSage, LinkHead::kDot);
  data.use.sets[0] = {};
  CHECK(WorkOf(options)->PlanEvaluation(EvalNodes::kValidation, kAlive)->phases == 0);
  const std::vector<uint32_t> beyond = {1, 100};
  data.use.sets[0].ends = beyond;
  CHECK(TorchWork::Create(options).status().code() == Code::kDatasetCorrupt);
  data.use.sets[0] = {};
  data.use.negatives = EvaluationNegatives::kDataset;
  CHECK(TorchWork::Create(options).status().code() == Code::kInvalidArgument);
  data.use.negatives = EvaluationNegatives::kPool;
  CHECK(TorchWork::Create(options).status().code() == Code::kInvalidArgument);
  data.use.negatives = EvaluationNegatives::kKeyed;
  const test::TestGraph other = test::GraphOf(std::vector<std::vector<uint32_t>>(99));
  data.use.test_messages = TestMessages{other.view()};
  CHECK(TorchWork::Create(options).status().code() == Code::kInvalidArgument);
  data.use.test_messages.reset();
  options.model.head = std::nullopt;
  CHECK(TorchWork::Create(options).status().code() == Code::kInvalidArgument);
}

}  // namespace gnnd
