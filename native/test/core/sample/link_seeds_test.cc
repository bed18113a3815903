#include "core/sample/link_seeds.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "core/draw/negatives.h"
#include "core/item/item_range.h"
#include "test/support/chi_square.h"
#include "test/support/equals_reference.h"
#include "test/support/links.h"

namespace gnnd {
namespace {

using test::LinkGraph;

constexpr NegativeMethod kMethods[] = {NegativeMethod::kUniform, NegativeMethod::kDegree,
                                       NegativeMethod::kJoint, NegativeMethod::kInBatch};
constexpr KnownLinks kKnown[] = {KnownLinks::kAllow, KnownLinks::kMask, KnownLinks::kAvoid};

void CheckBatch(const LinkGraph& graph, const LinkOptions& options, uint32_t batch_size,
                LinkSeeds* seeds, const BatchKey& key) {
  const TopologyView topology = graph.graph.view();
  REQUIRE(seeds->Make(key).ok());
  const ReferenceLinks expected = LinksReference(topology, options, key, graph.links, batch_size);
  const LinkBatch batch = seeds->batch();
  CHECK(test::SameBits(seeds->seeds(), expected.seeds));
  CHECK(test::SameBits(batch.pairs.items, expected.items));
  CHECK(test::SameBits(batch.pairs.source, expected.source));
  CHECK(test::SameBits(batch.pairs.destination, expected.destination));
  CHECK(test::SameBits(batch.pairs.masked, expected.masked));
  if (batch.pairs.in_batch) {
    CHECK(test::SameBits(batch.pairs.negatives, expected.destination));
  } else {
    CHECK(test::SameBits(batch.pairs.negatives, expected.negatives));
  }
  CHECK(seeds->seeds().size() <= options.MaxSeeds(batch.pairs.size()));
}

TEST_CASE("seeds, negatives and masks of a batch of links equal the reference") {
  const uint64_t first = test::RandomSeed(31);
  for (uint64_t seed = first; seed < first + 3; ++seed) {
    for (const bool symmetric : {false, true}) {
      const LinkGraph graph = test::RandomLinkGraph(seed, 90, 14, symmetric);
      for (const NegativeMethod method : kMethods) {
        for (const KnownLinks known : kKnown) {
          CAPTURE(seed);
          CAPTURE(symmetric);
          CAPTURE(static_cast<uint32_t>(method));
          CAPTURE(static_cast<uint32_t>(known));
          LinkOptions options = test::OptionsOf(graph, {.method = method, .known = known});
          options.negatives = 3;
          constexpr uint32_t kBatchSize = 40;
          LinkSeeds seeds(options, graph.links, kBatchSize, graph.graph.view());
          const uint32_t batches = NumBatches(options.count, kBatchSize);
          REQUIRE(batches >= 2);
          // The last batch is short.
          for (const uint32_t batch : {0U, batches - 1, 1U}) {
            CheckBatch(graph, options, kBatchSize, &seeds, {seed, 4, batch});
          }
        }
      }
    }
  }
}

TEST_CASE("negatives that avoid known links are none, or are masked where all are known") {
  const LinkGraph graph = test::RandomLinkGraph(7, 60, 30, true);
  const TopologyView topology = graph.graph.view();
  LinkOptions options = test::OptionsOf(graph, {.known = KnownLinks::kAvoid});
  options.negatives = 5;
  LinkSeeds seeds(options, graph.links, 30, topology);
  REQUIRE(seeds.Make({1, 0, 0}).ok());
  const PairsView pairs = seeds.batch().pairs;
  for (uint32_t i = 0; i < pairs.negatives.size(); ++i) {
    if (std::binary_search(pairs.masked.begin(), pairs.masked.end(), i)) continue;
    const uint32_t source = seeds.seeds()[pairs.source[i / 5]];
    const uint32_t node = seeds.seeds()[pairs.negatives[i]];
    CHECK(node != source);
    const auto row = topology.indices.subspan(topology.indptr[node], topology.degree(node));
    CHECK_FALSE(std::binary_search(row.begin(), row.end(), source));
  }
  // Nodes 0 and 1 are linked with all there are.
  LinkGraph full;
  full.symmetric = true;
  full.graph.AddRow({1});
  full.graph.AddRow({0});
  full.links = {0, 1};
  LinkOptions all = test::OptionsOf(full, {.known = KnownLinks::kAvoid});
  all.negatives = 2;
  LinkSeeds of_full(all, full.links, 8, full.graph.view());
  REQUIRE(of_full.Make({1, 0, 0}).ok());
  CHECK(of_full.batch().pairs.masked.size() == 2);
}

TEST_CASE("links that the graph lacks are known from their list") {
  for (const bool symmetric : {false, true}) {
    const LinkGraph drawn = test::RandomLinkGraph(21, 70, 12, symmetric);
    LinkGraph graph = test::RandomLinkGraph(22, 70, 6, symmetric);
    graph.links = drawn.links;
    for (const NegativeMethod method : kMethods) {
      for (const KnownLinks known : kKnown) {
        CAPTURE(symmetric);
        CAPTURE(static_cast<uint32_t>(method));
        CAPTURE(static_cast<uint32_t>(known));
        LinkOptions options = test::OptionsOf(graph, {.method = method, .known = known});
        options.negatives = 4;
        options.given = true;
        LinkSeeds seeds(options, graph.links, 30, graph.graph.view());
        CheckBatch(graph, options, 30, &seeds, {21, 1, 1});
      }
    }
  }
}

TEST_CASE("a training link that is no pair of nodes is refused by its number") {
  LinkGraph graph = test::RandomLinkGraph(9, 40, 8, false);
  graph.links[6] = 40;
  LinkSeeds seeds(test::OptionsOf(graph), graph.links, graph.num_links(), graph.graph.view());
  const Status status = seeds.Make({1, 0, 0});
  CHECK(status.code() == Code::kDatasetCorrupt);
  CHECK(status.message().find("training link 3 is (40, ") == 0);
}

TEST_CASE("a list in any order, over rows in any order, leaves each edge out once") {
  // Edges 1 -> 0 twice, 2 -> 0 and 0 -> 1; the link (1, 0) comes twice, and its reverse.
  LinkGraph graph;
  graph.symmetric = true;
  graph.graph.AddRow({2, 1, 1});
  graph.graph.AddRow({0});
  graph.graph.AddRow({});
  graph.links = {1, 0, 0, 1, 1, 0};
  LinkOptions options = test::OptionsOf(graph);
  options.given = true;
  LinkSeeds seeds(options, graph.links, 8, graph.graph.view(), {false, false});
  REQUIRE(seeds.Make({1, 0, 0}).ok());
  const LinkBatch batch = seeds.batch();
  CHECK(test::SameBits(batch.pairs.items, std::vector<uint32_t>{0, 1, 2}));
  REQUIRE(seeds.seeds()[0] == 1);
  REQUIRE(seeds.seeds()[1] == 0);
  CHECK(test::SameBits(batch.skips.first, std::vector<uint32_t>{0, 1, 3}));
  CHECK(test::SameBits(batch.skips.places, std::vector<uint64_t>{0, 1, 2}));
}

// From an implementation of the definition in Python.
TEST_CASE("negatives are frozen") {
  const BatchKey key{0x0123456789ABCDEF, 7, 11};
  std::vector<uint32_t> drawn;
  for (uint32_t row = 0; row < 2; ++row) {
    for (uint32_t column = 0; column < 4; ++column) {
      drawn.push_back(NegativeDraw(key, row, column, 0, 1000));
    }
  }
  CHECK(drawn == std::vector<uint32_t>{554, 104, 9, 48, 708, 389, 423, 894});
  CHECK(NegativeDraw(key, 1, 3, 5, 1000) == 909);
  const BatchKey evaluation{0x0123456789ABCDEF, kLinkEvaluationEpoch, 2};
  CHECK(NegativeDraw(evaluation, 0, 999, 0, 2'500'000) == 736'517);
  std::vector<uint32_t> shared(999);
  SharedNegatives(evaluation, 2'500'000, 999, shared.data());
  for (uint32_t column = 0; column < shared.size(); ++column) {
    CHECK(shared[column] == NegativeDraw(evaluation, 0, column, 0, 2'500'000));
  }
}

TEST_CASE("uniform negatives fall on every node equally often (chi-square, level 1e-6)") {
  constexpr uint32_t kNodes = 50;
  constexpr uint32_t kDraws = 40'000;
  std::vector<double> times(kNodes, 0);
  for (uint32_t i = 0; i < kDraws; ++i) {
    times[NegativeDraw({5, 2, i / 1000}, i % 100, i / 100 % 10, 0, kNodes)] += 1;
  }
  CHECK(test::ChiSquare(times, std::vector<double>(kNodes, kDraws / 50.0)) <
        test::ChiSquareLimit(kNodes - 1));
}

TEST_CASE("negatives by degree follow degree^0.75 (chi-square, level 1e-6)") {
  const LinkGraph graph = test::RandomLinkGraph(12, 80, 40, false);
  const TopologyView topology = graph.graph.view();
  const DegreeNodes nodes(topology);
  constexpr uint32_t kDraws = 200'000;
  std::vector<double> times(topology.num_nodes(), 0);
  for (uint32_t i = 0; i < kDraws; ++i) {
    times[nodes.Draw(LongRowWords(NegativeStream({6, 1, i / 100}, 0), i % 100, 0))] += 1;
  }
  double total = 0;
  for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
    total += std::pow(static_cast<double>(topology.degree(v)), 0.75);
  }
  std::vector<double> observed;
  std::vector<double> expected;
  for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
    if (topology.degree(v) == 0) {
      CHECK(times[v] == 0);
      continue;
    }
    observed.push_back(times[v]);
    expected.push_back(kDraws * std::pow(static_cast<double>(topology.degree(v)), 0.75) / total);
  }
  CHECK(test::ChiSquare(observed, expected) <
        test::ChiSquareLimit(static_cast<double>(observed.size()) - 1));
}

TEST_CASE("negatives that avoid known links fall equally on all others (chi-square, level 1e-6)") {
  // Node 0 is linked with 1 to 9 of 30 nodes.
  LinkGraph graph;
  graph.graph.AddRow({});
  for (uint32_t v = 1; v < 10; ++v) graph.graph.AddRow({0});
  for (uint32_t v = 10; v < 30; ++v) graph.graph.AddRow({});
  graph.links = test::LinksOf(graph.graph.view(), false);
  LinkOptions options = test::OptionsOf(graph, {.known = KnownLinks::kAvoid});
  options.negatives = 100;
  LinkSeeds seeds(options, graph.links, 9, graph.graph.view());
  std::vector<double> times(20, 0);
  uint32_t draws = 0;
  for (uint32_t epoch = 0; epoch < 40; ++epoch) {
    REQUIRE(seeds.Make({3, epoch, 0}).ok());
    const PairsView pairs = seeds.batch().pairs;
    for (uint32_t i = 0; i < pairs.negatives.size(); ++i) {
      if (std::binary_search(pairs.masked.begin(), pairs.masked.end(), i)) continue;
      const uint32_t node = seeds.seeds()[pairs.negatives[i]];
      REQUIRE(node >= 10);
      times[node - 10] += 1;
      ++draws;
    }
  }
  CHECK(test::ChiSquare(times, std::vector<double>(20, draws / 20.0)) < test::ChiSquareLimit(19));
}

TEST_CASE("the estimate of seeds counts ends by their links and negatives alike") {
  const std::vector<uint32_t> links = {0, 1, 0, 2, 0, 3, 1, 2};
  LinkOptions options;
  options.count = 4;
  options.negatives = 1;
  const std::vector<float> shares = LinkSeedShares(options, links, 2, 5);
  // A batch has half of the links, and two negatives among five nodes.
  CHECK(shares[0] == doctest::Approx(1 - std::exp(-1.5 - 0.4)));
  CHECK(shares[3] == doctest::Approx(1 - std::exp(-0.5 - 0.4)));
  CHECK(shares[4] == doctest::Approx(1 - std::exp(-0.4)));
}

}  // namespace
}  // namespace gnnd
