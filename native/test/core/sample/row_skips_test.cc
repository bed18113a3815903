#include "core/sample/row_skips.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/sample/sampler.h"
#include "test/support/chi_square.h"
#include "test/support/equals_reference.h"
#include "test/support/links.h"

// Batches whose rows do without some neighbours: draws equal those of the graph without these
// edges, in every sampler.

namespace gnnd {
namespace {

using test::LinkGraph;

constexpr uint32_t kBatchSize = 24;

// A sampler of batches of links, with a slot.
class LinkSampler {
 public:
  LinkSampler(const LinkGraph& graph, const SamplerOptions& options, const LinkOptions& links,
              InstructionSet set)
      : topology_(graph.graph.view()),
        seeds_(links, graph.links, kBatchSize, topology_),
        layout_(LayoutOf(topology_, options, links)),
        sampler_(topology_, options, layout_, set),
        slot_(layout_.slot_bytes(), std::byte{0xA5}) {}

  Sample Make(const BatchKey& key) {
    REQUIRE(seeds_.Make(key).ok());
    const Status status = sampler_.Sample(key, seeds_.seeds(), slot_, kScaleOne, seeds_.batch());
    REQUIRE_MESSAGE(status.ok(), status.message());
    const Result<Sample> sample = OpenRecord(slot_, true);
    REQUIRE_MESSAGE(sample.ok(), sample.status().message());
    return *sample;
  }
  const LinkSeeds& seeds() const { return seeds_; }

 private:
  static RecordLayout LayoutOf(const TopologyView& topology, const SamplerOptions& options,
                               const LinkOptions& links) {
    const Result<RecordLayout> layout = RecordLayout::Of(
        LimitsOf(topology.num_nodes(), topology.num_edges(), kBatchSize, options, links));
    REQUIRE(layout.ok());
    return *layout;
  }

  TopologyView topology_;
  LinkSeeds seeds_;
  RecordLayout layout_;
  Sampler sampler_;
  std::vector<std::byte> slot_;
};

void CheckPairs(const PairsView& actual, const PairsView& made) {
  const auto same = [](std::span<const uint32_t> a, std::span<const uint32_t> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  };
  CHECK(same(actual.source, made.source));
  CHECK(same(actual.destination, made.destination));
  CHECK(same(actual.negatives, made.negatives));
  CHECK(same(actual.items, made.items));
  CHECK(same(actual.masked, made.masked));
  CHECK(actual.per_pair == made.per_pair);
  CHECK(actual.in_batch == made.in_batch);
}

void CheckEqualsRest(const LinkGraph& graph, const SamplerOptions& options,
                     const LinkOptions& links, uint64_t seed) {
  for (const InstructionSet set : AvailableInstructionSets()) {
    LinkSampler sampler(graph, options, links, set);
    for (const uint32_t batch : {1U, 0U}) {
      const BatchKey key{seed, 3, batch};
      const Sample sample = sampler.Make(key);
      CheckPairs(sample.pairs(), sampler.seeds().batch().pairs);
      CHECK(sample.num_items() == sample.pairs().size());
      const ReferenceSkips skips = test::SkipsOf(sampler.seeds().batch(), sample.nodes(), links);
      const ReferenceSample expected = SampleReference(graph.graph.view(), options, key,
                                                       sampler.seeds().seeds(), kScaleOne, skips);
      REQUIRE(test::SameBits(sample.nodes(), expected.nodes));
      for (uint32_t hop = 0; hop < sample.num_hops(); ++hop) {
        CAPTURE(hop);
        const BlockView& block = sample.block(hop);
        REQUIRE(test::SameBits(block.indptr, expected.blocks[hop].indptr));
        REQUIRE(test::SameBits(block.src, expected.blocks[hop].src));
        REQUIRE(test::SameBits(block.weight, expected.blocks[hop].weight));
        REQUIRE(test::SameBits(block.self_weight, expected.blocks[hop].self_weight));
      }
    }
  }
}

struct Way {
  std::string name;
  SamplerOptions options;
  std::vector<std::vector<int32_t>> fanouts;
};

std::vector<Way> Ways() {
  std::vector<Way> ways;
  const std::vector<std::vector<int32_t>> finite = {{5, 3}, {12, 2}, {40}};
  const std::vector<std::vector<int32_t>> any = {{5, 3}, {40, 4}, {-1, 2}, {3, -1}};
  const auto add = [&ways](const std::string& name, SamplerOptions options,
                           const std::vector<std::vector<int32_t>>& fanouts) {
    ways.push_back({name, std::move(options), fanouts});
  };
  add("uniform", {}, any);
  add("GCN", {.fanouts = {}, .weights = EdgeWeights::kGcn}, any);
  add("with replacement", {.fanouts = {}, .replace = true}, finite);
  add("weighted", {.fanouts = {}, .algorithm = Algorithm::kWeighted}, any);
  add("weighted with replacement",
      {.fanouts = {}, .algorithm = Algorithm::kWeighted, .replace = true}, finite);
  add("LABOR", {.fanouts = {}, .weights = EdgeWeights::kInverse, .algorithm = Algorithm::kLabor},
      any);
  add("walks", {.fanouts = {}, .weights = EdgeWeights::kVisits, .algorithm = Algorithm::kWalk},
      finite);
  return ways;
}

TEST_CASE("batches that do without their links equal the graph without them, in every sampler") {
  const uint64_t first = test::RandomSeed(41);
  for (uint64_t seed = first; seed < first + 2; ++seed) {
    for (const bool symmetric : {true, false}) {
      LinkGraph graph = test::RandomLinkGraph(seed, 120, 50, symmetric);
      graph.graph.SetWeights(test::RandomWeights(seed, graph.graph));
      for (Way& way : Ways()) {
        for (const auto& fanouts : way.fanouts) {
          for (const LinkExclusion exclude :
               {LinkExclusion::kBatch, LinkExclusion::kBatchAfter, LinkExclusion::kNone}) {
            for (const Expansion expansion : {Expansion::kAll, Expansion::kNew}) {
              CAPTURE(seed);
              CAPTURE(symmetric);
              CAPTURE(way.name);
              CAPTURE(fanouts);
              CAPTURE(static_cast<uint32_t>(exclude));
              way.options.fanouts = fanouts;
              way.options.expansion = expansion;
              CheckEqualsRest(graph, way.options, test::OptionsOf(graph, {.exclude = exclude}),
                              seed);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("draws that favour some nodes equal the graph without the links, too") {
  for (const uint64_t seed : {51U, 52U}) {
    const LinkGraph graph = test::RandomLinkGraph(seed, 120, 50, true);
    const TopologyView plain = graph.graph.view();
    std::vector<uint8_t> favoured(plain.num_nodes());
    for (uint32_t v = 0; v < favoured.size(); ++v) favoured[v] = v % 3 == 0 ? 3 : 0;
    TopologyView topology = plain;
    topology.favoured = favoured;
    const LinkOptions links = test::OptionsOf(graph);
    for (const EdgeWeights weights : {EdgeWeights::kShares, EdgeWeights::kGcn}) {
      SamplerOptions options{.fanouts = {5, 3}, .weights = weights};
      options.locality.max_scale = 2;
      const Result<RecordLayout> layout = RecordLayout::Of(
          LimitsOf(topology.num_nodes(), topology.num_edges(), kBatchSize, options, links));
      REQUIRE(layout.ok());
      std::vector<std::byte> slot(layout->slot_bytes());
      Sampler sampler(topology, options, *layout, DetectInstructionSet());
      LinkSeeds seeds(links, graph.links, kBatchSize, topology);
      for (const uint32_t scale : {kScaleOne, 2 * kScaleOne}) {
        const BatchKey key{seed, 0, 1};
        REQUIRE(seeds.Make(key).ok());
        REQUIRE(sampler.Sample(key, seeds.seeds(), slot, scale, seeds.batch()).ok());
        const Sample sample = OwnSample(slot);
        const ReferenceSample expected =
            SampleReference(topology, options, key, seeds.seeds(), scale,
                            test::SkipsOf(seeds.batch(), sample.nodes(), links));
        CHECK(test::SameBits(sample.nodes(), expected.nodes));
        for (uint32_t hop = 0; hop < 2; ++hop) {
          CHECK(test::SameBits(sample.block(hop).src, expected.blocks[hop].src));
          CHECK(test::SameBits(sample.block(hop).weight, expected.blocks[hop].weight));
        }
      }
    }
  }
}

TEST_CASE("with full neighbourhoods it is the same whether links go before or after the draw") {
  const LinkGraph graph = test::RandomLinkGraph(5, 100, 30, true);
  for (const EdgeWeights weights : {EdgeWeights::kNone, EdgeWeights::kGcn}) {
    SamplerOptions options{.fanouts = {-1, -1}, .weights = weights};
    const auto hash = [&](LinkExclusion exclude) {
      LinkSampler sampler(graph, options, test::OptionsOf(graph, {.exclude = exclude}),
                          DetectInstructionSet());
      return test::ContentHash(sampler.Make({2, 1, 1}));
    };
    CHECK(hash(LinkExclusion::kBatch) == hash(LinkExclusion::kBatchAfter));
    CHECK(hash(LinkExclusion::kBatch) != hash(LinkExclusion::kNone));
  }
}

TEST_CASE("no row has a link of its batch among its neighbours, unless links stay") {
  const LinkGraph graph = test::RandomLinkGraph(6, 80, 20, true);
  const auto leaks = [&graph](LinkExclusion exclude) {
    const LinkOptions links = test::OptionsOf(graph, {.exclude = exclude});
    LinkSampler sampler(graph, {{4, 4}}, links, DetectInstructionSet());
    uint32_t found = 0;
    for (uint32_t batch = 0; batch < 5; ++batch) {
      const Sample sample = sampler.Make({8, 0, batch});
      std::set<std::pair<uint32_t, uint32_t>> own;
      for (uint32_t i = 0; i < sample.pairs().size(); ++i) {
        own.insert({sample.pairs().source[i], sample.pairs().destination[i]});
        own.insert({sample.pairs().destination[i], sample.pairs().source[i]});
      }
      for (uint32_t hop = 0; hop < 2; ++hop) {
        const BlockView& block = sample.block(hop);
        for (uint32_t row = 0; row < block.num_dst; ++row) {
          for (uint32_t e = block.indptr[row]; e < block.indptr[row + 1]; ++e) {
            found += own.contains({row, block.src[e]}) ? 1 : 0;
          }
        }
      }
    }
    return found;
  };
  CHECK(leaks(LinkExclusion::kBatch) == 0);
  CHECK(leaks(LinkExclusion::kBatchAfter) == 0);
  CHECK(leaks(LinkExclusion::kNone) > 50);
}

TEST_CASE("what is left of a row is drawn equally often (chi-square, level 1e-6)") {
  // Node 0 has 20 neighbours, of which it does without those at 0, 3, 4 and 19.
  test::Graph graph;
  std::vector<uint32_t> row(20);
  for (uint32_t j = 0; j < 20; ++j) row[j] = j + 1;
  graph.AddRow(row);
  for (uint32_t j = 0; j < 20; ++j) graph.AddRow({});
  const std::vector<uint32_t> first = {0, 4};
  const std::vector<uint64_t> places = {0, 3, 4, 19};
  for (const bool replace : {false, true}) {
    SamplerOptions options{{6}};
    options.replace = replace;
    test::SamplerUnderTest sampler(graph.view(), options, 1, DetectInstructionSet());
    std::vector<double> times(20, 0);
    constexpr uint32_t kBatches = 20'000;
    for (uint32_t batch = 0; batch < kBatches; ++batch) {
      const Sample sample =
          sampler.Sample({4, 0, batch}, std::vector<uint32_t>{0}, {{}, {first, places, false}});
      REQUIRE(sample.block(0).src.size() == 6);
      for (const uint32_t src : sample.block(0).src) times[sample.nodes()[src] - 1] += 1;
    }
    std::vector<double> left;
    for (uint32_t j = 0; j < 20; ++j) {
      if (RowSkips::Has(places, j)) {
        CHECK(times[j] == 0);
      } else {
        left.push_back(times[j]);
      }
    }
    const double share = 6.0 / 16.0;
    double chi_square = test::ChiSquare(left, std::vector<double>(left.size(), kBatches * share));
    if (!replace) chi_square *= 15.0 / 16.0 / (1.0 - share);
    CHECK(chi_square < test::ChiSquareLimit(15));
  }
}

TEST_CASE("what is left of a row is drawn by its weight (chi-square, level 1e-6)") {
  test::Graph graph;
  graph.AddRow({1, 2, 3, 4, 5});
  for (uint32_t j = 0; j < 5; ++j) graph.AddRow({});
  graph.SetWeights({5, 1, 2, 3, 4});
  const std::vector<uint32_t> first = {0, 2};
  const std::vector<uint64_t> places = {0, 3};
  SamplerOptions options{{1}};
  options.algorithm = Algorithm::kWeighted;
  test::SamplerUnderTest sampler(graph.view(), options, 1, DetectInstructionSet());
  std::vector<double> times(5, 0);
  constexpr uint32_t kBatches = 40'000;
  for (uint32_t batch = 0; batch < kBatches; ++batch) {
    const Sample sample =
        sampler.Sample({4, 0, batch}, std::vector<uint32_t>{0}, {{}, {first, places, false}});
    times[sample.nodes()[1] - 1] += 1;
  }
  CHECK(times[0] == 0);
  CHECK(times[3] == 0);
  CHECK(test::ChiSquare({times[1], times[2], times[4]},
                        {kBatches / 7.0, kBatches * 2 / 7.0, kBatches * 4 / 7.0}) <
        test::ChiSquareLimit(2) * 1.2);
}

TEST_CASE("the place of what is left skips what is left out") {
  const std::vector<uint64_t> left_out = {0, 1, 5, 9};
  std::vector<uint64_t> places;
  for (uint64_t left = 0; left < 8; ++left) places.push_back(RowSkips::PlaceOf(left_out, left));
  CHECK(places == std::vector<uint64_t>{2, 3, 4, 6, 7, 8, 10, 11});
  CHECK(RowSkips::PlaceOf({}, 7) == 7);
}

}  // namespace
}  // namespace gnnd
