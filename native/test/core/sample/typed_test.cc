#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "core/sample/sampler.h"
#include "test/support/equals_reference.h"
#include "test/support/reference.h"
#include "test/support/typed_graphs.h"

namespace gnnd {
namespace {

using test::Graph;
using test::RandomTypedGraph;
using test::SameBits;
using test::TypedGraph;

struct Kind {
  Algorithm algorithm;
  EdgeWeights weights;
  bool replace;
};

constexpr std::array<Kind, 5> kKinds = {{
    {Algorithm::kUniform, EdgeWeights::kNone, false},
    {Algorithm::kUniform, EdgeWeights::kNone, true},
    {Algorithm::kWeighted, EdgeWeights::kNone, false},
    {Algorithm::kWeighted, EdgeWeights::kNone, true},
    {Algorithm::kLabor, EdgeWeights::kInverse, false},
}};

SamplerOptions OptionsOf(const Kind& kind, std::vector<int32_t> fanouts, Expansion expansion) {
  SamplerOptions options{.fanouts = std::move(fanouts), .weights = kind.weights};
  options.algorithm = kind.algorithm;
  options.replace = kind.replace;
  options.expansion = expansion;
  return options;
}

// A sampler of a graph of several types and a slot of its own.
class TypedSampler {
 public:
  TypedSampler(const GraphView& graph, uint32_t seed_type, const SamplerOptions& options,
               InstructionSet set)
      : seed_type_(seed_type),
        layout_(*RecordLayout::Of(LimitsOf(graph, seed_type, 40, options))),
        sampler_(graph, options, layout_, set),
        slot_(layout_.slot_bytes(), std::byte{0xA5}) {}

  gnnd::Sample Sample(const BatchKey& key, std::span<const uint32_t> seeds) {
    const Status status = sampler_.Sample(key, seeds, slot_, kScaleOne, {}, seed_type_);
    REQUIRE_MESSAGE(status.ok(), status.message());
    const Result<gnnd::Sample> sample = OpenRecord(slot_, true);
    REQUIRE_MESSAGE(sample.ok(), sample.status().message());
    return *sample;
  }
  const RecordLayout& layout() const { return layout_; }

 private:
  uint32_t seed_type_;
  RecordLayout layout_;
  Sampler sampler_;
  std::vector<std::byte> slot_;
};

void CheckEquals(const Sample& sample, const TypedReferenceSample& expected, size_t num_seeds,
                 uint32_t seed_type) {
  REQUIRE(sample.num_node_types() == expected.nodes.size());
  for (uint32_t t = 0; t < sample.num_node_types(); ++t) {
    CAPTURE(t);
    REQUIRE(SameBits(sample.nodes(t), expected.nodes[t]));
    REQUIRE(sample.num_seeds(t) == (t == seed_type ? num_seeds : 0));
  }
  REQUIRE(sample.num_blocks() == expected.blocks.size());
  for (uint32_t b = 0; b < sample.num_blocks(); ++b) {
    CAPTURE(b);
    const BlockView& block = sample.block(b);
    const auto& [hop, relation, rows] = expected.blocks[b];
    REQUIRE(block.hop == hop);
    REQUIRE(block.relation == relation);
    REQUIRE(SameBits(block.indptr, rows.indptr));
    REQUIRE(SameBits(block.src, rows.src));
    REQUIRE(SameBits(block.weight, rows.weight));
  }
}

// By every instruction set and both relabel tables, after another batch.
void CheckKind(const GraphView& graph, uint32_t seed_type, SamplerOptions options, uint64_t seed) {
  const auto seeds = test::RandomNodes(seed, graph.num_nodes[seed_type], 20);
  const auto others = test::RandomNodes(seed + 1, graph.num_nodes[seed_type], 20);
  const BatchKey key{seed * 0x9E3779B97F4A7C15, 3, 7};
  const TypedReferenceSample expected = TypedReference(graph, options, key, seeds, seed_type);
  for (const InstructionSet set : AvailableInstructionSets()) {
    for (const uint64_t max_dense_table_bytes : {uint64_t{200'000'000}, uint64_t{0}}) {
      CAPTURE(std::string(NameOf(set)));
      CAPTURE(max_dense_table_bytes);
      options.max_dense_table_bytes = max_dense_table_bytes;
      TypedSampler sampler(graph, seed_type, options, set);
      sampler.Sample({seed, 2, 1}, others);
      CheckEquals(sampler.Sample(key, seeds), expected, seeds.size(), seed_type);
    }
  }
}

TEST_CASE("a batch of several types and relations equals the reference bit for bit") {
  const uint64_t first = test::RandomSeed(1);
  for (uint64_t seed = first; seed < first + 12; ++seed) {
    INFO("GNND_SEED=", seed);
    const auto num_types = static_cast<uint32_t>(1 + seed % 4);
    std::vector<uint32_t> num_nodes;
    for (uint32_t t = 0; t < num_types; ++t) {
      num_nodes.push_back(static_cast<uint32_t>(30 + seed * 37 % 200 + 100 * t));
    }
    const TypedGraph graph =
        RandomTypedGraph(seed, num_nodes, static_cast<uint32_t>(1 + seed % 7), 25);
    for (const Kind& kind : kKinds) {
      for (const Expansion expansion : {Expansion::kAll, Expansion::kNew}) {
        for (const std::vector<int32_t>& fanouts :
             {std::vector<int32_t>{4, 6}, {3, kFullNeighbourhood, 2}, {40}}) {
          CAPTURE(static_cast<uint32_t>(kind.algorithm));
          CAPTURE(kind.replace);
          CAPTURE(static_cast<uint32_t>(expansion));
          CAPTURE(fanouts.size());
          const uint32_t seed_type = graph.relations[seed % graph.relations.size()].dst_type;
          CheckKind(graph.view(), seed_type, OptionsOf(kind, fanouts, expansion), seed);
        }
      }
    }
  }
}

// One list for each relation, of which some draw nothing or everything.
std::vector<std::vector<int32_t>> RandomFanouts(uint64_t seed, size_t relations, size_t hops) {
  std::mt19937_64 generator(seed);
  std::vector<std::vector<int32_t>> lists(relations, std::vector<int32_t>(hops));
  for (std::vector<int32_t>& list : lists) {
    for (int32_t& fanout : list) fanout = static_cast<int32_t>(generator() % 7) - 1;
  }
  return lists;
}

TEST_CASE("each relation has fanouts of its own, and a hop may draw nothing along it") {
  const uint64_t first = test::RandomSeed(1);
  for (uint64_t seed = first; seed < first + 12; ++seed) {
    INFO("GNND_SEED=", seed);
    const TypedGraph graph =
        RandomTypedGraph(seed, {60, 90, 150}, static_cast<uint32_t>(2 + seed % 6), 12);
    for (const Kind& kind : kKinds) {
      for (const Expansion expansion : {Expansion::kAll, Expansion::kNew}) {
        CAPTURE(static_cast<uint32_t>(kind.algorithm));
        CAPTURE(kind.replace);
        CAPTURE(static_cast<uint32_t>(expansion));
        SamplerOptions options = OptionsOf(kind, {1, 1, 1}, expansion);
        options.relation_fanouts = RandomFanouts(seed, graph.relations.size(), 3);
        CheckKind(graph.view(), graph.relations[0].dst_type, options, seed);
      }
    }
  }
}

TEST_CASE("fanouts of relations that are all the same draw what one list for all does") {
  const TypedGraph graph = RandomTypedGraph(8, {60, 90, 150}, 6, 12);
  const uint32_t type = graph.relations[0].dst_type;
  const auto seeds = test::RandomNodes(9, graph.num_nodes[type], 20);
  SamplerOptions options = OptionsOf(kKinds[0], {4, 3}, Expansion::kAll);
  const TypedReferenceSample expected =
      TypedReference(graph.view(), options, {5, 1, 2}, seeds, type);
  options.relation_fanouts.assign(6, {4, 3});
  TypedSampler sampler(graph.view(), type, options, DetectInstructionSet());
  CheckEquals(sampler.Sample({5, 1, 2}, seeds), expected, seeds.size(), type);
}

TEST_CASE("a relation along which nothing is drawn leaves what the others draw as it is") {
  const TypedGraph graph = RandomTypedGraph(12, {80, 80}, 4, 12);
  const uint32_t type = graph.relations[3].dst_type;
  const auto seeds = test::RandomNodes(9, graph.num_nodes[type], 20);
  SamplerOptions options = OptionsOf(kKinds[0], {4}, Expansion::kAll);
  TypedSampler all(graph.view(), type, options, DetectInstructionSet());
  const Sample with = all.Sample({5, 1, 2}, seeds);
  options.relation_fanouts.assign(4, {4});
  options.relation_fanouts[3] = {0};
  TypedSampler fewer(graph.view(), type, options, DetectInstructionSet());
  const Sample without = fewer.Sample({5, 1, 2}, seeds);
  REQUIRE(with.num_blocks() == without.num_blocks());
  for (uint32_t b = 0; b < with.num_blocks(); ++b) {
    CAPTURE(b);
    const BlockView& block = without.block(b);
    CHECK(block.num_dst == seeds.size());
    if (block.relation == 3) {
      CHECK(block.src.empty());
      CHECK(block.indptr.size() == seeds.size() + 1);
      CHECK_FALSE(with.block(b).src.empty());
    } else {
      CHECK(std::ranges::equal(block.src, with.block(b).src));
    }
  }
}

TEST_CASE("the first relation of a graph of several draws what it draws alone") {
  TypedGraph graph = RandomTypedGraph(5, {200}, 1, 30);
  const auto seeds = test::RandomNodes(6, 200, 20);
  const SamplerOptions options = OptionsOf(kKinds[0], {5}, Expansion::kAll);
  const BatchKey key{77, 1, 2};
  test::SamplerUnderTest alone(graph.relations[0].rows.view(), options, 20, DetectInstructionSet());
  const Sample one = alone.Sample(key, seeds);
  graph.num_nodes.push_back(50);
  graph.relations.push_back({1, 0, RandomTypedGraph(9, {200}, 1, 10).relations[0].rows});
  for (uint32_t& u : graph.relations[1].rows.indices) u %= 50;
  TypedSampler typed(graph.view(), 0, options, DetectInstructionSet());
  const Sample both = typed.Sample(key, seeds);
  CHECK(std::ranges::equal(one.block(0).src, both.block(0).src));
  CHECK(std::ranges::equal(one.block(0).indptr, both.block(0).indptr));
}

// Pairs of picks by two relations of the same rows.
TEST_CASE("relations draw apart from each other, each uniformly") {
  constexpr uint32_t kDegree = 4;
  Graph rows;
  rows.AddRow({0, 1, 2, 3});
  for (uint32_t v = 1; v < kDegree; ++v) rows.AddRow({});
  TypedGraph graph{{kDegree, kDegree, kDegree}, {{0, 2, rows}, {1, 2, rows}}};
  for (const Kind& kind : {kKinds[0], kKinds[4]}) {
    TypedSampler sampler(graph.view(), 2, OptionsOf(kind, {1}, Expansion::kAll),
                         DetectInstructionSet());
    std::array<uint32_t, kDegree * kDegree> pairs{};
    uint32_t drawn = 0;
    for (uint32_t batch = 0; batch < 16'000; ++batch) {
      const Sample sample = sampler.Sample({3, 0, batch}, std::array{0U});
      for (const uint32_t one : sample.nodes(0)) {
        for (const uint32_t other : sample.nodes(1)) {
          ++pairs[one * kDegree + other];
          ++drawn;
        }
      }
    }
    CAPTURE(static_cast<uint32_t>(kind.algorithm));
    const double expected = drawn / 16.0;
    REQUIRE(expected > 900);
    double chi_square = 0;
    for (const uint32_t count : pairs) {
      chi_square += (count - expected) * (count - expected) / expected;
    }
    // 15 degrees of freedom; LABOR's pairs of one batch hang together, which widens it.
    CHECK(chi_square < (kind.algorithm == Algorithm::kLabor ? 80 : 44));
  }
}

TEST_CASE("as many types and relations as there may be") {
  const TypedGraph graph =
      RandomTypedGraph(3, std::vector<uint32_t>(kMaxNodeTypes, 20), kMaxRelations, 3);
  for (const Expansion expansion : {Expansion::kAll, Expansion::kNew}) {
    const SamplerOptions options =
        OptionsOf(kKinds[0], std::vector<int32_t>(kMaxHops, 2), expansion);
    const uint32_t type = graph.relations[0].dst_type;
    TypedSampler sampler(graph.view(), type, options, DetectInstructionSet());
    const std::array<uint32_t, 3> seeds = {4, 9, 2};
    const BatchKey key{1, 2, 3};
    CheckEquals(sampler.Sample(key, seeds), TypedReference(graph.view(), options, key, seeds, type),
                seeds.size(), type);
    CHECK(sampler.layout().num_blocks() > 900);
  }
}

}  // namespace
}  // namespace gnnd
