#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/executor/eval_scratch.h"
#include "core/graph/npy.h"
#include "link_data.h"
#include "test/support/npy_files.h"
#include "train/work/torch_work.h"

// What an inference asks the head of a model of links, beside scalar products of one pair after the
// other.

namespace gnnd {
namespace {

using test::LinkData;

const Alive kAlive = [] { return true; };

// An inference by any number of Trainers, in a folder of its own.
struct Inference {
  // Of all nodes where there are none.
  Inference(const LinkData& data, LinkHead head, LinkQuestion question,
            std::vector<uint32_t> nodes = {}) {
    std::filesystem::create_directories(folder.path() + "/out");
    options = data.Options(ModelType::kGraphSage, head);
    use = data.use;
    use.sets[0] = use.sets[1] = {};
    use.question = std::move(question);
    options.links = &use;
    options.predictions.folder = folder.path();
    options.predicts_all = nodes.empty();
    if (nodes.empty()) {
      nodes.resize(data.num_nodes());
      std::iota(nodes.begin(), nodes.end(), 0U);
    }
    options.predicted_nodes = std::move(nodes);
    const EvalLayout layout = EvalLayout::Of(options.model, data.num_nodes());
    auto made = EvalScratch::Create(layout.total_bytes, "/tmp");
    REQUIRE(made.ok());
    scratch = std::move(*made);
    options.eval_place.fd = scratch.get();
  }

  // Chunks by so many Trainers, in an order of their own within each phase; stops after `most`.
  // Answers how many were computed.
  uint64_t Run(uint32_t trainers, uint64_t most = UINT64_MAX) const {
    std::mt19937_64 random(trainers);
    std::vector<std::unique_ptr<TorchWork>> works;
    EvalShape shape;
    for (uint32_t i = 0; i < trainers; ++i) {
      auto work = TorchWork::Create(options);
      REQUIRE(work.ok());
      works.push_back(std::move(*work));
      const auto planned = works.back()->PlanEvaluation(EvalNodes::kValidation, kAlive);
      REQUIRE(planned.ok());
      shape = *planned;
      CHECK(works.back()->PlanEvaluation(EvalNodes::kTest, kAlive)->phases == 0);
    }
    std::vector<float> parameters(works[0]->manifest().num_floats);
    works[0]->InitParameters(parameters);
    chunks = shape.chunks;
    uint64_t computed = 0;
    uint64_t begun = 0;
    EvalTask task;
    for (task.phase = 0; task.phase < shape.phases; ++task.phase) {
      std::vector<uint32_t> order(shape.chunks);
      std::iota(order.begin(), order.end(), 0U);
      std::ranges::shuffle(order, random);
      for (const uint32_t chunk : order) {
        if (begun++ == most) return computed;
        ChunkReport report;
        task.chunk = chunk;
        task.report = &report;
        EvalResult result{};
        TorchWork& work = *works[random() % works.size()];
        REQUIRE(work.EvaluateChunk(task, {1, 0, parameters}, kAlive, &result).ok());
        CHECK(result.sums.items == 0);
        computed += report.was_done ? 0 : 1;
      }
    }
    return computed;
  }

  NpyArray Array(const std::string& name) const {
    return test::OpenNpy(folder.path() + "/out/" + name);
  }

  // All files' bytes, by name.
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path() + "/out")) {
      std::ifstream file(entry.path(), std::ios::binary);
      found[entry.path().filename()] = {std::istreambuf_iterator<char>(file), {}};
    }
    return found;
  }

  test::TempFolder folder;
  LinkUse use;
  TrainOptions options;
  UniqueFd scratch;
  mutable uint32_t chunks = 0;
};

// The last layer's rows of all nodes, by another inference's initial parameters.
std::vector<float> RowsOf(const Inference& inference) {
  auto work = TorchWork::Create(inference.options);
  REQUIRE(work.ok());
  std::vector<float> parameters((*work)->manifest().num_floats);
  (*work)->InitParameters(parameters);
  std::vector<uint32_t> nodes(inference.options.num_nodes());
  std::iota(nodes.begin(), nodes.end(), 0U);
  std::vector<float> rows;
  const auto append = [&](std::span<const uint32_t> part, const float* values) {
    rows.insert(rows.end(), values, values + part.size() * inference.options.model.out_dim);
    return Status::Ok();
  };
  REQUIRE((*work)->Predict(parameters, nodes, kAlive, append).ok());
  return rows;
}

double ScoreOf(const std::vector<float>& rows, uint32_t dim, LinkHead head, uint32_t source,
               uint32_t destination) {
  double sum = 0;
  double norms[2] = {};
  for (uint32_t c = 0; c < dim; ++c) {
    const double u = rows[uint64_t{source} * dim + c];
    const double v = rows[uint64_t{destination} * dim + c];
    sum += u * v;
    norms[0] += u * u;
    norms[1] += v * v;
  }
  return head == LinkHead::kDot ? sum : sum / std::sqrt(norms[0] * norms[1]);
}

// Rounding may turn the order of two scores that are this close.
constexpr double kClose = 1e-4;

using Pairs = std::set<std::pair<uint32_t, uint32_t>>;

// What a node is linked to already.
Pairs KnownOf(const LinkData& data, std::span<const LinkSet> sets) {
  Pairs known;
  const TopologyView graph = data.graph.view();
  for (uint32_t v = 0; v < data.num_nodes(); ++v) {
    for (uint64_t e = graph.indptr[v]; e < graph.indptr[v + 1]; ++e) {
      known.emplace(graph.indices[e], v);
    }
  }
  for (const LinkSet& set : sets) {
    for (uint64_t link = 0; link < set.size(); ++link) {
      known.emplace(set.source(link), set.destination(link));
      if (data.use.symmetric) known.emplace(set.destination(link), set.source(link));
    }
  }
  return known;
}

std::vector<uint32_t> RandomPairs(uint64_t pairs, uint32_t num_nodes) {
  std::mt19937 random(5);
  std::vector<uint32_t> ends(2 * pairs);
  for (uint32_t& node : ends) node = static_cast<uint32_t>(random() % num_nodes);
  return ends;
}

LinkQuestion ScoresOf(std::span<const uint32_t> pairs) {
  LinkQuestion question;
  question.asks = LinkAsks::kScores;
  question.pairs = pairs;
  return question;
}

LinkQuestion NearestOf(uint32_t k, const LinkData& data) {
  LinkQuestion question;
  question.asks = LinkAsks::kNearest;
  question.k = k;
  question.known = {data.use.sets[0], data.use.sets[1]};
  return question;
}

// Compares with all scores of a node, one after the other.
void CheckNearest(const LinkData& data, LinkHead head, const LinkQuestion& question,
                  const std::vector<uint32_t>& nodes) {
  const Inference inference(data, head, question, nodes);
  inference.Run(1);
  const std::vector<float> rows = RowsOf(inference);
  const uint32_t dim = inference.options.model.out_dim;
  const Pairs known = question.with_known ? Pairs() : KnownOf(data, question.known);
  const std::vector<uint32_t>& asked = inference.options.predicted_nodes;
  const NpyArray found = inference.Array("nearest.npy");
  const NpyArray scores = inference.Array("scores.npy");
  const uint64_t k = question.k;
  REQUIRE(found.Expect({NpyType::kInt64}, {asked.size(), k}).ok());
  REQUIRE(scores.Expect({NpyType::kFloat32}, {asked.size(), k}).ok());
  for (uint64_t row = 0; row < asked.size(); ++row) {
    const uint32_t source = asked[row];
    std::vector<double> all;
    const auto candidate = [&](uint32_t node) {
      const bool among = question.among.empty() || std::ranges::binary_search(question.among, node);
      return among && node != source && !known.contains({source, node});
    };
    for (uint32_t node = 0; node < data.num_nodes(); ++node) {
      if (candidate(node)) all.push_back(ScoreOf(rows, dim, head, source, node));
    }
    std::ranges::sort(all, std::greater());
    std::set<int64_t> seen;
    for (uint64_t i = 0; i < k; ++i) {
      const int64_t node = found.values<int64_t>()[row * k + i];
      const float score = scores.values<float>()[row * k + i];
      if (i >= all.size()) {
        CHECK(node == -1);
        CHECK(std::isnan(score));
        continue;
      }
      REQUIRE(node >= 0);
      CHECK(candidate(static_cast<uint32_t>(node)));
      CHECK(seen.insert(node).second);
      CHECK(score == doctest::Approx(all[i]).epsilon(kClose));
      const double own = ScoreOf(rows, dim, head, source, static_cast<uint32_t>(node));
      CHECK(score == doctest::Approx(own).epsilon(kClose));
    }
  }
}

}  // namespace

TEST_CASE("pairs are scored as one after the other is, in their order") {
  LinkData data(700, 12, true, 4);
  const std::vector<uint32_t> pairs = RandomPairs(9001, data.num_nodes());
  for (const LinkHead head : {LinkHead::kDot, LinkHead::kCosine}) {
    const Inference inference(data, head, ScoresOf(pairs));
    inference.Run(2);
    CHECK(inference.chunks == 3);  // blocks of the list, of which the graph alone would have one
    const std::vector<float> rows = RowsOf(inference);
    const NpyArray scores = inference.Array("scores.npy");
    const NpyArray ends = inference.Array("pairs.npy");
    REQUIRE(scores.Expect({NpyType::kFloat32}, {9001}).ok());
    REQUIRE(ends.Expect({NpyType::kInt64}, {9001, 2}).ok());
    CHECK(std::ranges::equal(ends.values<int64_t>(), pairs));
    for (uint64_t i = 0; i < 9001; ++i) {
      const double score =
          ScoreOf(rows, inference.options.model.out_dim, head, pairs[2 * i], pairs[2 * i + 1]);
      CHECK(scores.values<float>()[i] == doctest::Approx(score).epsilon(kClose));
    }
  }
}

TEST_CASE("the nearest are those of all scores, without what is known") {
  for (const bool symmetric : {true, false}) {
    for (const LinkHead head : {LinkHead::kDot, LinkHead::kCosine}) {
      CAPTURE(symmetric);
      CAPTURE(static_cast<int>(head));
      const LinkData data(500, 12, symmetric, 4);
      LinkQuestion question = NearestOf(7, data);
      CheckNearest(data, head, question, {});
      question.with_known = true;
      CheckNearest(data, head, question, {3, 4, 499});
      std::vector<uint32_t> among;
      for (uint32_t node = 100; node < 500; node += 3) among.push_back(node);
      question.with_known = false;
      question.among = among;
      CheckNearest(data, head, question, {0, 7, 100, 101, 250});
    }
  }
}

TEST_CASE("where fewer are left than are wanted, the rest is marked") {
  const LinkData data(300, 12, true, 4);
  const std::vector<uint32_t> among = {5, 6, 7, 8, 9};
  LinkQuestion question = NearestOf(5, data);
  question.among = among;
  CheckNearest(data, LinkHead::kDot, question, {5, 6, 200});
}

TEST_CASE("of nodes with equal scores the lower ones are nearest") {
  LinkData data(300, 8, true, 8);
  data.graph = test::GraphOf(std::vector<std::vector<uint32_t>>(300));
  std::ranges::fill(data.features, 0.7F);
  for (const LinkHead head : {LinkHead::kDot, LinkHead::kBilinear, LinkHead::kMlp}) {
    LinkQuestion question = NearestOf(3, data);
    question.known.clear();
    const Inference inference(data, head, question, {0, 1, 2, 250});
    inference.Run(1);
    const NpyArray found = inference.Array("nearest.npy");
    const std::vector<int64_t> expected = {1, 2, 3, 0, 2, 3, 0, 1, 3, 0, 1, 2};
    CHECK(std::ranges::equal(found.values<int64_t>(), expected));
  }
}

TEST_CASE("no byte depends on who computes which chunk, nor on where it was broken off") {
  LinkData data(900, 12, true, 6);
  const std::vector<uint32_t> pairs = RandomPairs(20'000, data.num_nodes());
  for (const LinkHead head : {LinkHead::kDot, LinkHead::kBilinear, LinkHead::kMlp}) {
    for (const bool scores : {true, false}) {
      CAPTURE(static_cast<int>(head));
      CAPTURE(scores);
      const LinkQuestion question = scores ? ScoresOf(pairs) : NearestOf(9, data);
      const Inference alone(data, head, question);
      const uint64_t all = alone.Run(1);
      const auto expected = alone.Files();
      CHECK(expected.size() == 2);
      const Inference several(data, head, question);
      CHECK(several.Run(3) == all);
      CHECK(several.Files() == expected);
      const Inference broken(data, head, question);
      const uint64_t before = broken.Run(2, all - 2);
      CHECK(before == all - 2);
      CHECK(broken.Run(1) == 2);  // what is done is not done again
      CHECK(broken.Files() == expected);
    }
  }
}

TEST_CASE("questions that cannot be are refused") {
  LinkData data(100, 8, true, 2);
  const std::vector<uint32_t> beyond = {1, 100};
  const auto code = [&](const LinkQuestion& question) {
    const Inference inference(data, LinkHead::kDot, question);
    return TorchWork::Create(inference.options).status().code();
  };
  CHECK(code(ScoresOf(beyond)) == Code::kDatasetCorrupt);
  CHECK(code(ScoresOf({})) == Code::kInvalidArgument);
  CHECK(code(NearestOf(0, data)) == Code::kInvalidArgument);
  LinkQuestion question = NearestOf(2, data);
  question.among = beyond;
  CHECK(code(question) == Code::kDatasetCorrupt);
  const std::vector<uint32_t> turned = {7, 3};
  question.among = turned;
  CHECK(code(question) == Code::kInvalidArgument);
}

}  // namespace gnnd
