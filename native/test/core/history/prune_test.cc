#include "core/history/prune.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "test/support/record_builder.h"
#include "test/support/sampling.h"

namespace gnnd {
namespace {

using test::GraphOf;
using test::TestGraph;
using test::TestRecord;

constexpr uint32_t kNodes = 120;

TestGraph RandomGraph(std::mt19937_64* random) {
  std::vector<std::vector<uint32_t>> rows(kNodes);
  for (uint32_t v = 0; v < kNodes; ++v) {
    std::set<uint32_t> neighbours;
    // Some are isolated, some their own neighbours.
    for (uint64_t i = (*random)() % 7; i > 0; --i) {
      neighbours.insert(static_cast<uint32_t>((*random)() % kNodes));
    }
    rows[v].assign(neighbours.begin(), neighbours.end());
  }
  return GraphOf(rows);
}

HistoryBuffer Buffer(uint32_t levels) {
  HistoryShape shape;
  shape.bytes = 1 << 16;
  shape.embedding_bytes = 16;
  shape.levels = levels;
  shape.num_nodes = kNodes;
  shape.t_stale = 10;
  return HistoryBuffer(shape);
}

// A row of a level, as (level, node); Made is its sources with their weights, in order.
using Row = std::pair<uint32_t, uint32_t>;
struct Made {
  std::vector<std::pair<uint32_t, float>> edges;
  float self_weight = 0;
  bool operator==(const Made&) const = default;
};

void Note(const Sample& sample, uint32_t hop, uint32_t row, std::span<const uint32_t> nodes,
          std::map<Row, Made>* made) {
  const BlockView& block = sample.block(hop);
  Made& one = (*made)[{sample.num_hops() - hop, nodes[row]}];
  for (uint32_t e = block.indptr[row]; e < block.indptr[row + 1]; ++e) {
    one.edges.emplace_back(nodes[block.src[e]], block.weight.empty() ? 1 : block.weight[e]);
  }
  if (!block.self_weight.empty()) one.self_weight = block.self_weight[row];
}

// The definition: everything that the seeds reach from the top down, stopping at stored rows other
// than seeds'.
std::map<Row, Made> Reached(const Sample& sample, const std::set<Row>& stored,
                            std::set<uint32_t>* inputs) {
  std::map<Row, Made> made;
  std::set<uint32_t> live;
  for (uint32_t seed = 0; seed < sample.num_seeds(); ++seed) live.insert(seed);
  for (uint32_t hop = 0; hop < sample.num_hops(); ++hop) {
    const BlockView& block = sample.block(hop);
    const uint32_t level = sample.num_hops() - hop;
    std::set<uint32_t> below;
    for (const uint32_t row : live) {
      const bool is_seed = row < sample.num_seeds();
      if (!is_seed && stored.contains({level, sample.nodes()[row]})) continue;
      Note(sample, hop, row, sample.nodes(), &made);
      below.insert(row);
      for (uint32_t e = block.indptr[row]; e < block.indptr[row + 1]; ++e) {
        below.insert(block.src[e]);
      }
    }
    live = std::move(below);
  }
  for (const uint32_t row : live) inputs->insert(sample.nodes()[row]);
  return made;
}

void CheckInvariants(const Sample& pruned, const Pruner& pruner) {
  const uint32_t hops = pruned.num_hops();
  for (uint32_t hop = 0; hop < hops; ++hop) {
    const BlockView& block = pruned.block(hop);
    CHECK(block.nodes.size() == block.num_src);
    CHECK(block.indptr.size() == block.num_dst + 1);
    CHECK(block.indptr.back() == block.src.size());
    std::set<uint32_t> read;
    for (const uint32_t src : block.src) read.insert(src);
    for (uint32_t row = 0; row < block.num_dst; ++row) read.insert(row);
    CHECK(read.size() == block.num_src);  // no row is there that nobody reads
    if (hop + 1 == hops) continue;
    // The next block computes the rows that are not stored, in the order in which this one has
    // them.
    const LevelRows& rows = pruner.rows(hops - 1 - hop);
    const BlockView& next = pruned.block(hop + 1);
    CHECK(rows.computed == next.num_dst);
    CHECK(rows.computed + rows.stored == block.num_src);
    uint32_t computed = 0;
    for (uint32_t i = 0; i < rows.places.size(); ++i) {
      if (rows.places[i] == kNoEmbedding) CHECK(next.nodes[computed++] == block.nodes[i]);
    }
  }
}

TEST_CASE("pruning leaves what the seeds still reach, and nothing else") {
  const uint64_t first_seed = test::RandomSeed(43);
  uint64_t all_stored = 0;
  uint64_t some_stored = 0;
  for (uint64_t seed = first_seed; seed < first_seed + 150; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const TestGraph graph = RandomGraph(&random);
    const auto hops = static_cast<uint32_t>(1 + random() % 4);
    std::vector<uint32_t> seeds;
    for (uint32_t v = 0; v < kNodes; ++v) {
      if (random() % 10 == 0) seeds.push_back(v);
    }
    if (seeds.empty()) seeds.push_back(3);
    const TestRecord record(
        graph, {{seed, 0, 0}, seeds, std::vector<int32_t>(hops, 3), random() % 2 == 0});
    const Sample sample = record.view();
    uint32_t levels = 0;
    for (uint32_t level = 1; level < hops; ++level) levels |= (random() % 3 != 0 ? 1U : 0) << level;
    HistoryBuffer buffer = Buffer(std::max(1U, hops));
    Pruner pruner(levels);
    std::set<Row> stored;
    const uint64_t share = random() % 5;  // quarters
    for (uint32_t level = 1; level < hops; ++level) {
      if (!pruner.keeps(level)) continue;
      std::vector<uint32_t> nodes;
      for (uint32_t v = 0; v < kNodes; ++v) {
        if (random() % 4 < share) nodes.push_back(v);
      }
      REQUIRE(buffer.Store(pruner.index_of(level), nodes, 1).size() == nodes.size());
      for (const uint32_t v : nodes) stored.insert({level, v});
    }
    const Sample& pruned = pruner.Prune(sample, buffer, 2);
    CheckInvariants(pruned, pruner);
    CHECK(pruned.num_seeds() == sample.num_seeds());
    std::map<Row, Made> made;
    for (uint32_t hop = 0; hop < hops; ++hop) {
      const BlockView& block = pruned.block(hop);
      for (uint32_t row = 0; row < block.num_dst; ++row) {
        Note(pruned, hop, row, block.nodes, &made);
      }
    }
    std::set<uint32_t> inputs;
    CHECK(made == Reached(sample, stored, &inputs));
    CHECK(std::set<uint32_t>(pruned.nodes().begin(), pruned.nodes().end()) == inputs);
    CHECK(pruned.nodes().size() == inputs.size());
    const bool is_whole = inputs.size() == sample.nodes().size();
    all_stored += share == 4 && !is_whole ? 1 : 0;
    some_stored += share > 0 && share < 4 && !is_whole ? 1 : 0;
  }
  CHECK(all_stored > 0);
  CHECK(some_stored > 0);
}

TEST_CASE("without a stored row, pruning leaves the very sample") {
  std::mt19937_64 random(44);
  const TestGraph graph = RandomGraph(&random);
  const TestRecord record(graph, {{1, 0, 0}, {5, 90, 17, 4}, {3, 4, 2}, true});
  const Sample sample = record.view();
  const HistoryBuffer buffer = Buffer(2);
  Pruner pruner(0b110);
  const Sample& pruned = pruner.Prune(sample, buffer, 0);
  const auto same = [](auto one, auto other) { return std::ranges::equal(one, other); };
  CHECK(same(pruned.nodes(), sample.nodes()));
  for (uint32_t hop = 0; hop < 3; ++hop) {
    CHECK(same(pruned.block(hop).indptr, sample.block(hop).indptr));
    CHECK(same(pruned.block(hop).src, sample.block(hop).src));
    CHECK(same(pruned.block(hop).weight, sample.block(hop).weight));
    CHECK(same(pruned.block(hop).self_weight, sample.block(hop).self_weight));
    CHECK(pruned.block(hop).num_src == sample.block(hop).num_src);
  }
}

}  // namespace
}  // namespace gnnd
