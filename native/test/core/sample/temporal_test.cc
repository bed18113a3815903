#include "test/support/temporal.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/batch/trees.h"
#include "core/sample/temporal_sampler.h"
#include "test/support/chi_square.h"
#include "test/support/equals_reference.h"

namespace gnnd {
namespace {

using test::SameBits;
using test::SortedByTime;
using test::TemporalUnderTest;

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kTimes = 60;  // few, so that many edges have the same

SamplerOptions OptionsOf(std::vector<int32_t> fanouts, Expansion expansion = Expansion::kAll) {
  SamplerOptions options{std::move(fanouts)};
  options.expansion = expansion;
  return options;
}

TimedEdges RandomTimedEdges(uint64_t seed, uint32_t num_types, uint32_t num_relations) {
  std::vector<uint32_t> num_nodes;
  for (uint32_t t = 0; t < num_types; ++t) {
    num_nodes.push_back(static_cast<uint32_t>(15 + seed * 37 % 60 + 20 * t));
  }
  test::TypedGraph graph = test::RandomTypedGraph(seed, num_nodes, num_relations, 30);
  return test::WithRandomTimes(seed + 1, std::move(graph), kTimes);
}

// Some of all types, of which nodes repeat; one in eight sees nothing, one in eight everything.
std::vector<TimedSeed> RandomSeeds(uint64_t seed, const std::vector<uint32_t>& num_nodes,
                                   uint32_t of_each) {
  std::mt19937_64 generator(seed);
  std::vector<TimedSeed> seeds;
  for (uint32_t t = 0; t < num_nodes.size(); ++t) {
    for (uint32_t i = 0; i < of_each; ++i) {
      const auto node = static_cast<uint32_t>(generator() % num_nodes[t] / 2);
      const auto time = static_cast<int64_t>(generator() % kTimes);
      const uint64_t extreme = generator() % 16;
      seeds.push_back({t, node, extreme == 0 ? kMin : extreme == 1 ? kMax : time});
    }
  }
  return seeds;
}

std::vector<uint32_t> Bounds(const TimedEdges& edges, uint32_t of_each) {
  return std::vector<uint32_t>(edges.graph.num_nodes.size(), of_each);
}

void CheckEquals(const Sample& sample, const TypedReferenceSample& expected) {
  for (uint32_t t = 0; t < sample.num_node_types(); ++t) {
    CAPTURE(t);
    REQUIRE(SameBits(sample.nodes(t), expected.nodes[t]));
  }
  REQUIRE(sample.num_blocks() == expected.blocks.size());
  for (uint32_t b = 0; b < sample.num_blocks(); ++b) {
    CAPTURE(b);
    const BlockView& block = sample.block(b);
    REQUIRE(block.hop == expected.blocks[b].hop);
    REQUIRE(block.relation == expected.blocks[b].relation);
    REQUIRE(SameBits(block.indptr, expected.blocks[b].block.indptr));
    REQUIRE(SameBits(block.src, expected.blocks[b].block.src));
  }
}

void CheckEqualsReference(const TimedEdges& edges, const SamplerOptions& options,
                          const TimeOptions& times, uint64_t seed) {
  const SortedByTime sorted(edges);
  const uint32_t of_each = 19;  // no multiple of a group
  const auto seeds = RandomSeeds(seed, edges.graph.num_nodes, of_each);
  const auto others = RandomSeeds(seed + 1, edges.graph.num_nodes, of_each);
  const BatchKey key{seed * 0x9E3779B97F4A7C15, 3, 7};
  const TypedReferenceSample expected = TemporalReference(edges, options, times, key, seeds);
  for (const InstructionSet set : AvailableInstructionSets()) {
    CAPTURE(std::string(NameOf(set)));
    TemporalUnderTest sampler(sorted.view(), options, times, Bounds(edges, of_each), set);
    sampler.Sample({seed, 2, 1}, others);
    const Sample sample = sampler.Sample(key, seeds);
    CheckEquals(sample, expected);
    for (uint32_t t = 0; t < sample.num_node_types(); ++t) REQUIRE(sample.num_seeds(t) == of_each);
  }
}

const std::vector<TimeOptions> kTimeOptions = {
    {TimeCompare::kBefore, TimePick::kUniform, 0},  {TimeCompare::kNotAfter, TimePick::kUniform, 0},
    {TimeCompare::kBefore, TimePick::kRecent, 0},   {TimeCompare::kBefore, TimePick::kUniform, 20},
    {TimeCompare::kNotAfter, TimePick::kRecent, 5},
};

TEST_CASE("a batch in time equals the reference bit for bit, whatever its types and options") {
  const uint64_t first = test::RandomSeed(1);
  for (uint64_t seed = first; seed < first + 8; ++seed) {
    INFO("GNND_SEED=", seed);
    const auto num_types = static_cast<uint32_t>(1 + seed % 3);
    const TimedEdges edges = RandomTimedEdges(seed, num_types, static_cast<uint32_t>(1 + seed % 5));
    for (const TimeOptions& times : kTimeOptions) {
      for (const Expansion expansion : {Expansion::kAll, Expansion::kNew}) {
        for (const std::vector<int32_t>& fanouts :
             {std::vector<int32_t>{5, 3}, {1, 9, 2}, {-1, 4}, {3, -1}, {40}}) {
          CAPTURE(fanouts.size());
          CAPTURE(fanouts[0]);
          CheckEqualsReference(edges, OptionsOf(fanouts, expansion), times, seed);
        }
      }
    }
  }
}

TEST_CASE("draws with replacement in time equal the reference bit for bit") {
  const uint64_t seed = test::RandomSeed(3);
  INFO("GNND_SEED=", seed);
  const TimedEdges edges = RandomTimedEdges(seed, 2, 3);
  for (const std::vector<int32_t>& fanouts : {std::vector<int32_t>{5, 3}, {40}, {2, -1}}) {
    SamplerOptions options = OptionsOf(fanouts);
    options.replace = true;
    CheckEqualsReference(edges, options, {}, seed);
  }
}

TEST_CASE("a row of a million edges in time equals the reference bit for bit") {
  constexpr uint32_t kLong = (1U << 20) + 9;
  TimedEdges edges;
  edges.graph.num_nodes = {20};
  test::TypedGraph::Relation relation{0, 0, {}};
  std::vector<uint32_t> row;
  for (uint32_t e = 0; e < kLong; ++e) row.push_back(e % 20);
  relation.rows.AddRow(row);
  for (uint32_t v = 1; v < 20; ++v) relation.rows.AddRow({v});
  edges.graph.relations.push_back(relation);
  std::mt19937_64 generator(5);
  std::vector<int64_t>& times = edges.times.emplace_back();
  for (uint32_t e = 0; e < kLong + 19; ++e) {
    times.push_back(static_cast<int64_t>(generator() % 1000));
  }
  const SortedByTime sorted(edges);
  // The first sees so many that a draw takes two words, the second half of them.
  const std::vector<TimedSeed> seeds = {{0, 0, 1000}, {0, 0, 500}, {0, 3, 1000}};
  for (const int32_t fanout : {4, 50}) {
    const SamplerOptions options = OptionsOf({fanout});
    const TypedReferenceSample expected = TemporalReference(edges, options, {}, {9, 1, 2}, seeds);
    TemporalUnderTest sampler(sorted.view(), options, {}, {3}, DetectInstructionSet());
    CheckEquals(sampler.Sample({9, 1, 2}, seeds), expected);
  }
}

// Each tree of a sample as text: its nodes by type, and the edges of each block between places in
// these lists.
std::vector<std::string> TreeTexts(const Sample& sample, size_t num_trees) {
  const auto trees = TreesOf(sample);
  std::vector<std::string> texts(num_trees);
  std::vector<std::vector<uint32_t>> places;  // of each node in its tree
  for (uint32_t t = 0; t < trees.size(); ++t) {
    std::vector<uint32_t> counts(num_trees);
    std::vector<uint32_t>& of_type = places.emplace_back();
    for (size_t i = 0; i < trees[t].size(); ++i) {
      of_type.push_back(counts[trees[t][i]]++);
      texts[trees[t][i]] += std::to_string(t) + ":" + std::to_string(sample.nodes(t)[i]) + " ";
    }
  }
  for (uint32_t b = 0; b < sample.num_blocks(); ++b) {
    const BlockView& block = sample.block(b);
    for (uint32_t row = 0; row < block.num_dst; ++row) {
      std::string& text = texts[trees[block.dst_type][row]];
      text += '\n';
      text += std::to_string(b) + "/" + std::to_string(places[block.dst_type][row]) + ":";
      for (uint32_t e = block.indptr[row]; e < block.indptr[row + 1]; ++e) {
        text += ' ';
        text += std::to_string(places[block.src_type][block.src[e]]);
      }
    }
  }
  return texts;
}

// The graph with every edge that comes at `cut` or later redrawn, its time as well, some of them
// gone, and as many new ones.
TimedEdges WithOtherFuture(const TimedEdges& edges, int64_t cut, uint64_t random_seed) {
  std::mt19937_64 generator(random_seed);
  TimedEdges other{{edges.graph.num_nodes, {}}, {}};
  for (size_t r = 0; r < edges.times.size(); ++r) {
    const auto& [src_type, dst_type, rows] = edges.graph.relations[r];
    if (edges.times[r].empty()) {
      other.graph.relations.push_back(edges.graph.relations[r]);
      other.times.emplace_back();
      continue;
    }
    test::TypedGraph::Relation relation{src_type, dst_type, {}};
    std::vector<int64_t> times;
    for (size_t v = 0; v + 1 < rows.indptr.size(); ++v) {
      std::vector<uint32_t> row;
      for (uint64_t e = rows.indptr[v]; e < rows.indptr[v + 1]; ++e) {
        if (edges.times[r][e] >= cut) continue;
        row.push_back(rows.indices[e]);
        times.push_back(edges.times[r][e]);
      }
      for (uint64_t later = generator() % 12; later > 0; --later) {
        row.push_back(static_cast<uint32_t>(generator() % other.graph.num_nodes[src_type]));
        times.push_back(cut + static_cast<int64_t>(generator() % kTimes));
      }
      relation.rows.AddRow(row);
    }
    other.graph.relations.push_back(relation);
    other.times.push_back(times);
  }
  return other;
}

TEST_CASE("what lies at the cut or later changes no byte of a record") {
  const uint64_t seed = test::RandomSeed(7);
  INFO("GNND_SEED=", seed);
  constexpr int64_t kCut = 30;
  const TimedEdges edges = RandomTimedEdges(seed, 3, 5);
  auto seeds = RandomSeeds(seed, edges.graph.num_nodes, 12);
  for (TimedSeed& item : seeds) item.time = std::min(item.time, kCut);
  for (const TimePick pick : {TimePick::kUniform, TimePick::kRecent}) {
    const TimeOptions times{TimeCompare::kBefore, pick};
    const SamplerOptions options = OptionsOf({6, 4});
    const auto bytes_of = [&](const TimedEdges& graph) {
      const SortedByTime sorted(graph);
      // The bounds are those of one graph: they decide where sections lie.
      TemporalUnderTest sampler(sorted.view(), options, times, Bounds(edges, 12),
                                DetectInstructionSet());
      sampler.Sample({seed, 1, 2}, seeds);
      const std::span<const std::byte> slot = sampler.slot();
      return std::vector<std::byte>(slot.begin(), slot.end());
    };
    const auto bytes = bytes_of(edges);
    for (uint64_t other = 0; other < 5; ++other) {
      CHECK(bytes_of(WithOtherFuture(edges, kCut, seed + other)) == bytes);
    }
    // What lies before it does.
    CHECK(bytes_of(WithOtherFuture(edges, kCut / 2, seed)) != bytes);
  }
}

TEST_CASE("a tree is the same whatever comes after its own seed, and whatever other trees hold") {
  const uint64_t seed = test::RandomSeed(11);
  INFO("GNND_SEED=", seed);
  const TimedEdges edges = RandomTimedEdges(seed, 2, 4);
  const SamplerOptions options = OptionsOf({6, 4, 3}, Expansion::kNew);
  const auto seeds = RandomSeeds(seed, edges.graph.num_nodes, 30);
  const auto texts_of = [&](const TimedEdges& graph, const std::vector<TimedSeed>& of) {
    const SortedByTime sorted(graph);
    TemporalUnderTest sampler(sorted.view(), options, {}, Bounds(edges, 30),
                              DetectInstructionSet());
    return TreeTexts(sampler.Sample({seed, 1, 2}, of), of.size());
  };
  const auto texts = texts_of(edges, seeds);
  for (const int64_t cut : {10, 30, 50}) {
    const auto later = texts_of(WithOtherFuture(edges, cut, seed), seeds);
    size_t changed = 0;
    for (size_t tree = 0; tree < seeds.size(); ++tree) {
      if (seeds[tree].time <= cut) {
        CHECK(later[tree] == texts[tree]);
      } else {
        changed += later[tree] == texts[tree] ? 0 : 1;
      }
    }
    CHECK(changed > 0);
  }
  auto others = RandomSeeds(seed + 1, edges.graph.num_nodes, 30);
  others[7] = seeds[7];
  others[41] = seeds[41];
  const auto beside = texts_of(edges, others);
  CHECK(beside[7] == texts[7]);
  CHECK(beside[41] == texts[41]);
}

// One row of edges 0, 1, … at times 0, 10, …, which rows of `seeds` see at their times.
std::vector<std::vector<uint32_t>> SeenOfRow(const TimeOptions& times, int32_t fanout,
                                             const std::vector<int64_t>& seed_times) {
  TimedEdges edges;
  edges.graph.num_nodes = {8};
  test::TypedGraph::Relation relation{0, 0, {}};
  relation.rows.AddRow({1, 2, 3, 4, 5});
  for (uint32_t v = 1; v < 8; ++v) relation.rows.AddRow({});
  edges.graph.relations.push_back(relation);
  edges.times = {{0, 10, 20, 20, 30}};
  std::vector<TimedSeed> seeds;
  for (const int64_t time : seed_times) seeds.push_back({0, 0, time});
  const SortedByTime sorted(edges);
  TemporalUnderTest sampler(sorted.view(), OptionsOf({fanout}), times,
                            {static_cast<uint32_t>(seeds.size())}, DetectInstructionSet());
  const Sample sample = sampler.Sample({1, 0, 0}, seeds);
  const BlockView& block = sample.block(0);
  std::vector<std::vector<uint32_t>> rows;
  for (uint32_t row = 0; row < seeds.size(); ++row) {
    std::vector<uint32_t>& nodes = rows.emplace_back();
    for (uint32_t e = block.indptr[row]; e < block.indptr[row + 1]; ++e) {
      nodes.push_back(sample.nodes()[block.src[e]]);
    }
  }
  return rows;
}

TEST_CASE("a seed sees edges before it, or at its time as well, as far back as the window goes") {
  using Rows = std::vector<std::vector<uint32_t>>;
  const std::vector<int64_t> at = {0, 10, 20, 21, 100, kMin, kMax};
  CHECK(SeenOfRow({TimeCompare::kBefore}, -1, at) ==
        Rows{{}, {1}, {1, 2}, {1, 2, 3, 4}, {1, 2, 3, 4, 5}, {}, {1, 2, 3, 4, 5}});
  CHECK(SeenOfRow({TimeCompare::kNotAfter}, -1, at) ==
        Rows{{1}, {1, 2}, {1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4, 5}, {}, {1, 2, 3, 4, 5}});
  CHECK(SeenOfRow({TimeCompare::kBefore, TimePick::kUniform, 10}, -1, at) ==
        Rows{{}, {1}, {2}, {3, 4}, {}, {}, {}});
  CHECK(SeenOfRow({TimeCompare::kNotAfter, TimePick::kUniform, 10}, -1, at) ==
        Rows{{1}, {2}, {3, 4}, {3, 4}, {}, {}, {}});
  CHECK(SeenOfRow({TimeCompare::kBefore, TimePick::kRecent}, 2, at) ==
        Rows{{}, {1}, {1, 2}, {3, 4}, {4, 5}, {}, {4, 5}});
  constexpr uint64_t kAlways = std::numeric_limits<uint64_t>::max();
  CHECK(SeenOfRow({TimeCompare::kBefore, TimePick::kRecent, kAlways}, 1, at) ==
        Rows{{}, {1}, {2}, {4}, {5}, {}, {5}});
}

TEST_CASE("the range of times that a seed sees ends where int64 does") {
  const auto seen = [](int64_t time, TimeCompare compare, uint64_t window) {
    return SeenAt(time, {compare, TimePick::kUniform, window});
  };
  CHECK(seen(5, TimeCompare::kBefore, 0) == TimeRange{kMin, 4});
  CHECK(seen(5, TimeCompare::kNotAfter, 0) == TimeRange{kMin, 5});
  CHECK(seen(5, TimeCompare::kBefore, 1) == TimeRange{4, 4});
  CHECK(seen(5, TimeCompare::kNotAfter, 1) == TimeRange{5, 5});
  CHECK(seen(kMin + 3, TimeCompare::kBefore, 3) == TimeRange{kMin, kMin + 2});
  CHECK(seen(kMin + 3, TimeCompare::kBefore, 4) == TimeRange{kMin, kMin + 2});
  CHECK(seen(kMax, TimeCompare::kNotAfter, std::numeric_limits<uint64_t>::max()) ==
        TimeRange{kMin + 1, kMax});
  CHECK(seen(kMin, TimeCompare::kNotAfter, 7) == TimeRange{kMin, kMin});
  const TimeRange none = seen(kMin, TimeCompare::kBefore, 0);
  CHECK(none.first > none.last);
}

TEST_CASE("every edge that a seed sees is drawn equally often (chi-square, level 1e-6)") {
  constexpr uint32_t kDegree = 60;
  constexpr uint32_t kSeen = 25;
  constexpr uint32_t kSeeds = 2000;
  TimedEdges edges;
  edges.graph.num_nodes = {1, kDegree};
  test::TypedGraph::Relation relation{1, 0, {}};
  std::vector<uint32_t> row;
  for (uint32_t e = 0; e < kDegree; ++e) row.push_back(e);
  relation.rows.AddRow(row);
  edges.graph.relations.push_back(relation);
  edges.times.emplace_back();
  for (uint32_t e = 0; e < kDegree; ++e) edges.times[0].push_back(e);
  const SortedByTime sorted(edges);
  // One node is every seed, so its rows draw alike unless each tree has draws of its own.
  const std::vector<TimedSeed> seeds(kSeeds, TimedSeed{0, 0, kSeen});
  for (const int32_t fanout : {5, 24}) {
    TemporalUnderTest sampler(sorted.view(), OptionsOf({fanout}), {}, {kSeeds, 0},
                              DetectInstructionSet());
    std::vector<double> times(kSeen, 0);
    for (uint32_t batch = 0; batch < 10; ++batch) {
      const Sample sample = sampler.Sample({17, 4, batch}, seeds);
      for (const uint32_t source : sample.block(0).src) times[sample.nodes(1)[source]] += 1;
    }
    const double share = static_cast<double>(fanout) / kSeen;
    const double expected = kSeeds * 10 * share;
    double chi_square = 0;
    for (const double observed : times) {
      chi_square += (observed - expected) * (observed - expected) / expected;
    }
    // As in uniformity_test.cc: draws without replacement vary less than independent ones.
    chi_square *= (kSeen - 1.0) / kSeen / (1.0 - share);
    CHECK(chi_square < test::ChiSquareLimit(kSeen - 1.0));
  }
}

TEST_CASE("two trees of one node draw independently (chi-square, level 1e-6)") {
  constexpr uint32_t kDegree = 8;
  TimedEdges edges;
  edges.graph.num_nodes = {1, kDegree};
  test::TypedGraph::Relation relation{1, 0, {}};
  relation.rows.AddRow({0, 1, 2, 3, 4, 5, 6, 7});
  edges.graph.relations.push_back(relation);
  edges.times = {std::vector<int64_t>(kDegree, 0)};
  const SortedByTime sorted(edges);
  TemporalUnderTest sampler(sorted.view(), OptionsOf({1}), {}, {2, 0}, DetectInstructionSet());
  const std::vector<TimedSeed> seeds(2, TimedSeed{0, 0, 1});
  std::vector<double> times(kDegree * kDegree, 0);
  constexpr uint32_t kBatches = 20'000;
  for (uint32_t batch = 0; batch < kBatches; ++batch) {
    const Sample sample = sampler.Sample({3, 0, batch}, seeds);
    const std::span<const uint32_t> src = sample.block(0).src;
    times[sample.nodes(1)[src[0]] * kDegree + sample.nodes(1)[src[1]]] += 1;
  }
  const std::vector<double> expected(times.size(), kBatches / 64.0);
  CHECK(test::ChiSquare(times, expected) < test::ChiSquareLimit(63));
}

TEST_CASE("memory follows the largest batch, and a batch of the same size takes no more") {
  const TimedEdges edges = RandomTimedEdges(5, 2, 4);
  const SortedByTime sorted(edges);
  TemporalUnderTest sampler(sorted.view(), OptionsOf({8, 8, 8}), {}, {40, 40},
                            DetectInstructionSet());
  const auto seeds = RandomSeeds(5, edges.graph.num_nodes, 40);
  const Sample sample = sampler.Sample({1, 0, 0}, seeds);
  const uint64_t nodes = sample.nodes(0).size() + sample.nodes(1).size();
  REQUIRE(nodes > 2'000);  // so that the tables have grown
  const uint64_t bytes = sampler.workspace_bytes();
  CHECK(bytes <= 100'000 + 56 * nodes + 32 * seeds.size());
  sampler.Sample({1, 0, 0}, seeds);
  CHECK(sampler.workspace_bytes() == bytes);
}

TEST_CASE("seeds that cannot be are refused, and the slot is no record") {
  const TimedEdges edges = RandomTimedEdges(5, 2, 3);
  const SortedByTime sorted(edges);
  TemporalUnderTest sampler(sorted.view(), OptionsOf({3, 3}), {}, {2, 1}, DetectInstructionSet());
  const auto code = [&](const std::vector<TimedSeed>& seeds) {
    return sampler.TrySample({1, 0, 0}, seeds).code();
  };
  CHECK(code({}) == Code::kInvalidArgument);
  CHECK(code({{0, edges.graph.num_nodes[0], 5}}) == Code::kInvalidArgument);
  CHECK(code({{1, 0, 5}, {1, 0, 6}}) == Code::kInvalidArgument);
  CHECK(!OpenRecord(sampler.slot()).ok());
  CHECK(code({{0, 0, 5}, {0, 0, 5}, {1, 0, 5}}) == Code::kOk);
}

}  // namespace
}  // namespace gnnd
