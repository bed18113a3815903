#include "core/sample/sampler.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <ranges>
#include <set>
#include <string>
#include <vector>

#include "test/support/equals_reference.h"
#include "test/support/graphs.h"
#include "test/support/sampling.h"

namespace gnnd {
namespace {

using test::CheckEqualsReference;
using test::Graph;
using test::SamplerUnderTest;

constexpr int32_t kAll = kFullNeighbourhood;

TEST_CASE("the sampler equals the reference bit for bit on random graphs") {
  const std::vector<std::vector<int32_t>> fanout_lists = {
      {1},       {5, 10},   {10, 5}, {15, 10, 5}, {25, 3},  {40, 4},      {kAll},
      {kAll, 5}, {5, kAll}, {32, 2}, {33, 2},     {3, 100}, {kAll, kAll}, {2, 2, 2, 2, 2, 2, 2, 2},
  };
  const uint64_t first_seed = test::RandomSeed(1);
  for (uint64_t round = 0; round < 12; ++round) {
    const uint64_t seed = first_seed + round;
    CAPTURE(seed);
    const auto num_nodes = static_cast<uint32_t>(1 + (seed * 7919) % 900);
    const auto max_degree = static_cast<uint32_t>(1 + (seed * 104729) % 120);
    const Graph graph = test::RandomGraph(seed, num_nodes, max_degree);
    std::vector<std::vector<uint32_t>> batches;
    for (const uint32_t size : {1U, 17U, 48U, 300U}) {
      batches.push_back(test::RandomNodes(seed + size, num_nodes, std::min(size, num_nodes)));
    }
    for (const auto& fanouts : fanout_lists) {
      CAPTURE(fanouts.size());
      CAPTURE(fanouts[0]);
      const EdgeWeights weights = round % 2 == 0 ? EdgeWeights::kGcn : EdgeWeights::kNone;
      CheckEqualsReference(graph.view(), {.fanouts = fanouts, .weights = weights}, batches,
                           seed * 0x9E3779B97F4A7C15);
    }
  }
}

TEST_CASE("every option of the uniform sampler equals the reference bit for bit") {
  const uint64_t seed = test::RandomSeed(91);
  CAPTURE(seed);
  const Graph graph = test::RandomGraph(seed, 700, 90);
  const std::vector<std::vector<uint32_t>> batches = {
      test::RandomNodes(seed, 700, 40), {3}, test::RandomNodes(seed + 1, 700, 200)};
  for (const auto& fanouts : std::vector<std::vector<int32_t>>{
           {3, 2, 2}, {10, 4}, {1}, {40, 3}, {kAll, 2}, {2, kAll}, {kAll, kAll}}) {
    for (const Expansion expansion : {Expansion::kAll, Expansion::kNew}) {
      for (const bool replace : {false, true}) {
        for (const EdgeWeights weights : {EdgeWeights::kNone, EdgeWeights::kGcn}) {
          CAPTURE(fanouts);
          CAPTURE(static_cast<int>(expansion));
          CAPTURE(replace);
          SamplerOptions options{.fanouts = fanouts, .weights = weights};
          options.replace = replace;
          options.expansion = expansion;
          CheckEqualsReference(graph.view(), options, batches, seed);
        }
      }
    }
  }
}

TEST_CASE("with new nodes only, every node has one row, which all later blocks repeat") {
  const Graph graph = test::RandomGraph(19, 3000, 30);
  SamplerOptions options{.fanouts = {4, 4, 4}, .weights = EdgeWeights::kNone};
  options.expansion = Expansion::kNew;
  SamplerUnderTest sampler(graph.view(), options, 16, DetectInstructionSet());
  const Sample sample = sampler.Sample({6, 0, 0}, test::RandomNodes(20, 3000, 16));
  REQUIRE(sample.num_hops() == 3);
  CHECK(sample.num_edges() == sample.block(2).src.size());
  for (uint32_t hop = 0; hop < 3; ++hop) {
    const BlockView block = sample.block(hop);
    const BlockView last = sample.block(2);
    CHECK(block.indptr.data() == last.indptr.data());
    CHECK(block.src.data() == last.src.data());
    CHECK(block.num_dst == (hop == 0 ? 16 : sample.block(hop - 1).num_src));
  }
  // Counted once: the header, nodes, indptr, src.
  const RecordHeader& header = OwnHeader(sampler.slot());
  CHECK(header.payload_bytes ==
        HeaderBytes(1, 3) +
            4 * (sample.nodes().size() + sample.block(2).indptr.size() + sample.num_edges()));
}

TEST_CASE("with new nodes only, the first hop is that of the other rule") {
  const Graph graph = test::RandomGraph(23, 500, 40);
  const auto seeds = test::RandomNodes(24, 500, 30);
  SamplerOptions options{.fanouts = {7, 7}, .weights = EdgeWeights::kNone};
  SamplerUnderTest all(graph.view(), options, 30, DetectInstructionSet());
  options.expansion = Expansion::kNew;
  SamplerUnderTest fresh(graph.view(), options, 30, DetectInstructionSet());
  const BlockView of_all = all.Sample({8, 1, 2}, seeds).block(0);
  const BlockView of_fresh = fresh.Sample({8, 1, 2}, seeds).block(0);
  CHECK(std::ranges::equal(of_all.indptr, of_fresh.indptr));
  CHECK(std::ranges::equal(of_all.src, of_fresh.src));
}

TEST_CASE("rows at the borders of each road equal the reference") {
  // Degrees around the fanouts below, self-loops, one neighbour repeated, isolated nodes.
  Graph graph;
  constexpr uint32_t kNodes = 64;
  for (uint32_t v = 0; v < kNodes; ++v) {
    std::vector<uint32_t> row;
    for (uint32_t j = 0; j < v; ++j) row.push_back(j % 3 == 0 ? v : (v * 31 + j * 7) % kNodes);
    if (v % 13 == 5) row.assign(v, 9);
    if (v % 17 == 3) row.clear();
    graph.AddRow(row);
  }
  std::vector<uint32_t> all = test::RandomNodes(4, kNodes, kNodes);
  for (const int32_t fanout : {1, 4, 5, 15, 16, 31, 32, 33, 40, 63, 64, 4096, kAll}) {
    CAPTURE(fanout);
    for (const bool replace : {false, true}) {
      SamplerOptions options{.fanouts = {fanout, fanout}, .weights = EdgeWeights::kGcn};
      options.replace = replace;
      CheckEqualsReference(graph.view(), options, {all, {3}, {0, 1, 2}}, 99);
    }
  }
}

TEST_CASE("rows of two-word draws stand beside rows of one-word draws") {
  // Node 0 is just above, node 1 at, node 2 just below the border.
  Graph graph;
  std::vector<uint32_t> row(kTwoWordDegree + 1);
  for (uint32_t i = 0; i < row.size(); ++i) row[i] = (i * 2654435761U) % 4096;
  graph.AddRow(row);
  row.pop_back();
  graph.AddRow(row);
  row.pop_back();
  graph.AddRow(row);
  for (uint32_t v = 3; v < 4096; ++v) graph.AddRow({v - 1, 0, v - 2});
  for (const bool replace : {false, true}) {
    SamplerOptions options{.fanouts = {10, 2}, .weights = EdgeWeights::kGcn};
    options.replace = replace;
    CheckEqualsReference(graph.view(), options, {{5, 0, 2, 1}, {0}, {2, 3, 4, 1}}, 7);
    options.fanouts = {50};
    CheckEqualsReference(graph.view(), options, {{5, 0, 2, 1}}, 7);
  }
}

TEST_CASE("a hash table that must grow within a batch gives the same result") {
  constexpr uint32_t kNodes = 150'000;
  Graph graph;
  std::vector<uint32_t> row(100);
  for (uint32_t v = 0; v < kNodes; ++v) {
    for (uint32_t j = 0; j < row.size(); ++j) row[j] = (v * 101 + j * 7907) % kNodes;
    if (v < 2000)
      graph.AddRow(row);
    else
      graph.AddRow({});
  }
  const auto large = test::RandomNodes(1, 2000, 1500);
  CheckEqualsReference(graph.view(), {.fanouts = {60}, .weights = EdgeWeights::kNone},
                       {{7}, large, {8}, large}, 5);
}

TEST_CASE("a record passes the deep check and repeats exactly") {
  const Graph graph = test::RandomGraph(11, 500, 60);
  const auto seeds = test::RandomNodes(12, 500, 64);
  SamplerUnderTest sampler(graph.view(), {.fanouts = {8, 8}, .weights = EdgeWeights::kGcn}, 64,
                           DetectInstructionSet());
  const BatchKey key{42, 1, 2};
  sampler.Sample(key, seeds);
  const std::vector<std::byte> first = sampler.slot();
  sampler.Sample({42, 1, 3}, seeds);
  const Sample other = sampler.Sample(key, seeds);
  CHECK(other.key().random_seed == 42);
  CHECK(other.key().epoch == 1);
  CHECK(other.key().batch == 2);
  CHECK(OpenRecord(sampler.slot(), true).ok());
  const uint64_t hash = test::ContentHash(other);
  const auto opened = OpenRecord(first);
  REQUIRE(opened.ok());
  CHECK(hash == test::ContentHash(*opened));
}

TEST_CASE("picks are neighbours, distinct positions and as many as the fanout allows") {
  constexpr uint32_t kNodes = 400;
  Graph graph;  // rows without repeats, so that equal ids would mean a position drawn twice
  for (uint32_t v = 0; v < kNodes; ++v) {
    graph.AddRow(test::RandomNodes(v, kNodes, v % 90));
  }
  const auto seeds = test::RandomNodes(77, kNodes, kNodes);
  SamplerUnderTest sampler(graph.view(), {.fanouts = {12}, .weights = EdgeWeights::kNone}, kNodes,
                           DetectInstructionSet());
  const Sample sample = sampler.Sample({5, 0, 0}, seeds);
  const BlockView block = sample.block(0);
  for (uint32_t row = 0; row < block.num_dst; ++row) {
    const uint32_t node = sample.nodes()[row];
    const auto begin = graph.indices.begin() + static_cast<int64_t>(graph.indptr[node]);
    const std::set<uint32_t> neighbours(begin, begin + node % 90);
    std::set<uint32_t> picked;
    for (uint32_t e = block.indptr[row]; e < block.indptr[row + 1]; ++e) {
      picked.insert(sample.nodes()[block.src[e]]);
    }
    REQUIRE(picked.size() == block.indptr[row + 1] - block.indptr[row]);
    REQUIRE(picked.size() == std::min<size_t>(12, neighbours.size()));
    REQUIRE(std::includes(neighbours.begin(), neighbours.end(), picked.begin(), picked.end()));
  }
}

TEST_CASE("weights of a full-neighbourhood block are the normalised adjacency") {
  // 0 -> 1, 0 -> 2, 1 -> 2: in-degrees 0, 1, 2.
  Graph graph;
  graph.AddRow({});
  graph.AddRow({0});
  graph.AddRow({0, 1});
  SamplerUnderTest sampler(graph.view(), {.fanouts = {kAll}, .weights = EdgeWeights::kGcn}, 3,
                           InstructionSet::kPlain);
  const Sample sample = sampler.Sample({1, 0, 0}, std::vector<uint32_t>{2, 1, 0});
  const BlockView block = sample.block(0);
  REQUIRE(block.weight.size() == 3);
  CHECK(block.weight[0] == doctest::Approx(1 / std::sqrt(1.0 * 3.0)));
  CHECK(block.weight[1] == doctest::Approx(1 / std::sqrt(2.0 * 3.0)));
  CHECK(block.weight[2] == doctest::Approx(1 / std::sqrt(1.0 * 2.0)));
  CHECK(block.self_weight[0] == doctest::Approx(1.0 / 3.0));
  CHECK(block.self_weight[1] == doctest::Approx(1.0 / 2.0));
  CHECK(block.self_weight[2] == 1.0F);
}

TEST_CASE("a sampled row's weights stand for the whole row") {
  Graph graph;
  graph.AddRow({1, 2, 3, 4, 5, 6});
  for (int i = 0; i < 6; ++i) graph.AddRow({});
  SamplerUnderTest sampler(graph.view(), {.fanouts = {2}, .weights = EdgeWeights::kGcn}, 1,
                           InstructionSet::kPlain);
  const Sample sample = sampler.Sample({1, 0, 0}, std::vector<uint32_t>{0});
  REQUIRE(sample.block(0).weight.size() == 2);
  for (const float weight : sample.block(0).weight) {
    CHECK(weight == doctest::Approx(3.0 / std::sqrt(7.0)));
  }
}

TEST_CASE("bad seeds are refused, leave no record and do not disturb the next batch") {
  // Dense enough that the good seeds lead to the bad ones.
  const Graph graph = test::RandomGraph(3, 50, 60);
  SamplerUnderTest sampler(graph.view(), {.fanouts = {40, 40}, .weights = EdgeWeights::kNone}, 8,
                           DetectInstructionSet());
  const std::vector<uint32_t> good = {4, 9, 11};
  const uint64_t expected = test::ContentHash(sampler.Sample({1, 0, 0}, good));
  const std::vector<std::vector<uint32_t>> bad = {
      {}, {1, 2, 1}, {0, 50}, {0, 1, 2, 3, 4, 5, 6, 7, 8}};
  for (const auto& seeds : bad) {
    CAPTURE(seeds.size());
    const Status status = sampler.TrySample({1, 0, 0}, seeds);
    CHECK(status.code() == Code::kInvalidArgument);
    CHECK(test::ContentHash(sampler.Sample({1, 0, 0}, good)) == expected);
  }
  REQUIRE_FALSE(sampler.TrySample({1, 0, 0}, bad[1]).ok());
  CHECK_FALSE(OpenRecord(sampler.slot()).ok());
}

TEST_CASE("the bits of a batch are those frozen in core/draw") {
  const Graph graph = test::RandomGraph(2024, 5000, 80);
  const auto seeds = test::RandomNodes(2025, 5000, 40);
  for (const InstructionSet set : AvailableInstructionSets()) {
    CAPTURE(std::string(NameOf(set)));
    SamplerUnderTest sampler(graph.view(), {.fanouts = {15, 10, 5}, .weights = EdgeWeights::kGcn},
                             40, set);
    const Sample sample = sampler.Sample({0x0123456789ABCDEF, 7, 11}, seeds);
    CHECK(sample.nodes().size() == 4392);
    CHECK(sample.num_edges() == 11'611);
    CHECK(test::ContentHash(sample) == 12496885174438734673U);
  }
}

TEST_CASE("the bits of draws with replacement and of new nodes only are frozen, too") {
  const Graph graph = test::RandomGraph(2024, 5000, 80);
  const auto seeds = test::RandomNodes(2025, 5000, 40);
  const auto hash = [&](bool replace, Expansion expansion) {
    SamplerOptions options{.fanouts = {15, 10, 5}, .weights = EdgeWeights::kNone};
    options.replace = replace;
    options.expansion = expansion;
    SamplerUnderTest sampler(graph.view(), options, 40, DetectInstructionSet());
    return test::ContentHash(sampler.Sample({0x0123456789ABCDEF, 7, 11}, seeds));
  };
  CHECK(hash(true, Expansion::kAll) == 6201934481254734340U);
  CHECK(hash(false, Expansion::kNew) == 580738422331313407U);
}

// Rows of zeros up to the last `rows` nodes of the largest graph there may be; memory that nobody
// touched costs nothing.
class LastNodes {
 public:
  static constexpr uint64_t kNodes = 0xFFFFFFFE;

  explicit LastNodes(uint32_t rows) : bytes_((kNodes + 1) * sizeof(uint64_t)) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    indptr_ = static_cast<uint64_t*>(memory);
    std::mt19937_64 random(5);
    for (uint64_t v = kNodes - rows; v < kNodes; ++v) {
      const uint64_t degree = random() % 40;
      for (uint64_t k = 0; k < degree; ++k) {
        indices_.push_back(static_cast<uint32_t>(kNodes - 1 - random() % rows));
      }
      indptr_[v + 1] = indices_.size();
    }
  }
  LastNodes(const LastNodes&) = delete;
  LastNodes& operator=(const LastNodes&) = delete;
  ~LastNodes() { munmap(indptr_, bytes_); }

  TopologyView view() const { return {{indptr_, kNodes + 1}, indices_}; }

 private:
  uint64_t bytes_;
  uint64_t* indptr_;
  std::vector<uint32_t> indices_;
};

TEST_CASE("the last of 2^32 - 2 nodes are drawn as any other") {
  const LastNodes graph(300);
  for (const Algorithm algorithm : {Algorithm::kUniform, Algorithm::kLabor, Algorithm::kWalk}) {
    SamplerOptions options{{7, 5}};
    options.algorithm = algorithm;
    if (algorithm == Algorithm::kLabor) options.weights = EdgeWeights::kInverse;
    if (algorithm == Algorithm::kWalk) options.weights = EdgeWeights::kVisits;
    const std::vector<uint32_t> seeds = {0xFFFFFFFD, 0xFFFFFFF0, 0xFFFFFF00};
    const BatchKey key{0x0123456789ABCDEF, 7, 11};
    const ReferenceSample expected = SampleReference(graph.view(), options, key, seeds);
    REQUIRE(expected.nodes.size() > 50);
    for (const InstructionSet set : AvailableInstructionSets()) {
      CAPTURE(std::string(NameOf(set)));
      SamplerUnderTest sampler(graph.view(), options, 3, set);
      const Sample record = sampler.Sample(key, seeds);
      CHECK(test::SameBits(record.nodes(), expected.nodes));
      CHECK(test::SameBits(record.block(1).src, expected.blocks[1].src));
    }
  }
}

TEST_CASE("workspace grows with the hash table and not with further batches") {
  const Graph graph = test::RandomGraph(3, 800, 20);
  const auto seeds = test::RandomNodes(1, 800, 100);
  SamplerUnderTest sampler(
      graph.view(), {.fanouts = {5, 5}, .weights = EdgeWeights::kGcn, .max_dense_table_bytes = 0},
      100, DetectInstructionSet());
  sampler.Sample({1, 0, 0}, seeds);
  const uint64_t after_one = sampler.workspace_bytes();
  sampler.Sample({1, 0, 0}, seeds);
  CHECK(sampler.workspace_bytes() == after_one);
  CHECK(after_one > 0);
}

}  // namespace
}  // namespace gnnd
