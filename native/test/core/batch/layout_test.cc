#include "core/batch/layout.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/batch/record.h"

namespace gnnd {
namespace {

RecordLayout LayoutOf(const SampleLimits& limits) {
  const Result<RecordLayout> layout = RecordLayout::Of(limits);
  REQUIRE_MESSAGE(layout.ok(), layout.status().message());
  return *layout;
}

SampleLimits WeightedLimits(uint32_t num_nodes, uint64_t num_edges, uint32_t batch_size,
                            std::vector<int32_t> fanouts) {
  SampleLimits limits = SampleLimits::Of(num_nodes, num_edges, batch_size, std::move(fanouts));
  limits.edge_weights = limits.self_weights = true;
  return limits;
}

TEST_CASE("bounds multiply by the fanouts until the graph ends them") {
  const RecordLayout layout = LayoutOf(SampleLimits::Of(1000, 5000, 10, {15, 10, 5}));
  CHECK(layout.nodes().max_seeds == 10);
  CHECK(layout.block(0).max_dst == 10);
  CHECK(layout.block(0).max_edges == 150);
  CHECK(layout.block(1).max_dst == 160);
  CHECK(layout.block(1).max_edges == 1600);
  CHECK(layout.block(2).max_dst == 1000);
  CHECK(layout.block(2).max_edges == 5000);
  CHECK(layout.nodes().max_nodes == 1000);
}

TEST_CASE("a full neighbourhood is bounded by the graph") {
  const RecordLayout layout = LayoutOf(SampleLimits::Of(1000, 700, 10, {kFullNeighbourhood, 3}));
  CHECK(layout.block(0).max_edges == 700);
  CHECK(layout.block(1).max_dst == 710);
  CHECK(layout.block(1).max_edges == 700);
  CHECK(layout.nodes().max_nodes == 1000);
}

TEST_CASE("a batch larger than the graph is bounded by it") {
  CHECK(LayoutOf(SampleLimits::Of(20, 40, 1000, {2})).nodes().max_seeds == 20);
}

TEST_CASE("sections are aligned, in order and far enough apart") {
  const RecordLayout layout = LayoutOf(WeightedLimits(100'000, 1'000'000, 512, {7, 9}));
  uint64_t end = sizeof(RecordHeader);
  const auto follows = [&end](uint64_t at, uint64_t elements) {
    CHECK(at % RecordLayout::kSectionAlignment == 0);
    CHECK(at >= end);
    end = at + 4 * elements + RecordLayout::kSectionSlackBytes;
  };
  follows(layout.nodes().nodes_at, layout.nodes().max_nodes);
  for (uint32_t hop = 0; hop < layout.num_hops(); ++hop) {
    const BlockLayout& place = layout.block(hop);
    follows(place.indptr_at, place.max_dst + 1);
    follows(place.src_at, place.max_edges);
    follows(place.weight_at, place.max_edges);
    follows(place.self_weight_at, place.max_dst);
  }
  CHECK(layout.slot_bytes() >= end);
  CHECK(layout.slot_bytes() < end + RecordLayout::kSectionAlignment);
}

TEST_CASE("a record without edge weights has no room for them") {
  const RecordLayout layout = LayoutOf(SampleLimits::Of(1000, 5000, 10, {5}));
  CHECK(layout.block(0).weight_at == 0);
  CHECK(layout.block(0).self_weight_at == 0);
  CHECK(layout.slot_bytes() < LayoutOf(WeightedLimits(1000, 5000, 10, {5})).slot_bytes());
}

TEST_CASE("where a node has one row, a hop adds rows for what the hop before found") {
  SampleLimits limits = WeightedLimits(1'000'000, 50'000'000, 10, {15, 10, 5});
  limits.expansion = Expansion::kNew;
  const RecordLayout layout = LayoutOf(limits);
  CHECK(layout.block(0).max_edges == 150);
  CHECK(layout.block(1).max_dst == 160);
  CHECK(layout.block(1).max_edges == 150 + 1500);
  CHECK(layout.block(2).max_dst == 1660);
  CHECK(layout.block(2).max_edges == 1650 + 7500);
  CHECK(layout.nodes().max_nodes == 9160);
  CHECK(layout.block(2).indptr_at == layout.block(0).indptr_at);
  CHECK(layout.block(1).src_at == layout.block(0).src_at);
  CHECK(layout.block(0).src_at >= layout.block(0).indptr_at + 4 * 1661);
  CHECK(layout.block(0).weight_at >= layout.block(0).src_at + 4 * 9150);
  CHECK(layout.block(2).self_weight_at >= layout.block(0).weight_at + 4 * 9150);
}

TEST_CASE("edges that repeat are not bounded by the graph's") {
  SampleLimits limits = SampleLimits::Of(1000, 50, 10, {15});
  CHECK(LayoutOf(limits).block(0).max_edges == 50);
  limits.rows = RowBound::kRepeats;
  CHECK(LayoutOf(limits).block(0).max_edges == 150);
}

TEST_CASE("a row of LABOR has room for more than its fanout") {
  SampleLimits limits = SampleLimits::Of(1000, 100'000, 10, {15});
  limits.rows = RowBound::kLabor;
  CHECK(LayoutOf(limits).block(0).max_edges == 10 * (4 * 15 + 64));
}

TEST_CASE("limits that cannot be are refused by name") {
  const SampleLimits good = SampleLimits::Of(1000, 5000, 10, {5, 5});
  const auto refused = [](SampleLimits limits, const std::string& word) {
    const Result<RecordLayout> layout = RecordLayout::Of(limits);
    REQUIRE_FALSE(layout.ok());
    CHECK(layout.status().code() == Code::kInvalidArgument);
    CHECK(layout.status().message().find(word) != std::string::npos);
  };
  SampleLimits limits = good;
  limits.types[0].num_nodes = 0;
  refused(limits, "no nodes");
  limits = good;
  limits.types[0].max_seeds = 0;
  refused(limits, "batch_size");
  limits = good;
  for (const std::vector<int32_t>& fanouts :
       {std::vector<int32_t>{}, std::vector<int32_t>(kMaxHops + 1, 2)}) {
    limits.relations[0].fanouts = fanouts;
    refused(limits, "1 to 8 hops");
  }
  for (const int32_t fanout : {0, -2, kMaxFanout + 1}) {
    limits.relations[0].fanouts = {5, fanout};
    refused(limits, "fanouts[1]");
  }
}

TEST_CASE("a bound beyond 32 bits is refused, one at the border is not") {
  constexpr uint64_t kBorder = 0xFFFFFFFF;
  const SampleLimits largest = SampleLimits::Of(2'000'000'000, kBorder, 10, {kFullNeighbourhood});
  CHECK(LayoutOf(largest).block(0).max_edges == kBorder);
  SampleLimits beyond = largest;
  beyond.relations[0].num_edges = kBorder + 1;
  const Result<RecordLayout> layout = RecordLayout::Of(beyond);
  REQUIRE_FALSE(layout.ok());
  CHECK(layout.status().code() == Code::kInvalidArgument);
  CHECK(layout.status().message().find("hop 0") != std::string::npos);
  // Sampled hops are bounded by seeds and fanouts, however large the graph.
  beyond.relations[0].fanouts = {100, 100};
  CHECK(LayoutOf(beyond).block(1).max_edges == 101'000);
}

// Types: papers (0), authors (1), venues (2), which no relation leads to. Seeds are papers.
SampleLimits TypedLimits() {
  SampleLimits limits;
  limits.types = {{1000, 10}, {500, 0}, {7, 0}};
  limits.relations = {{0, 0, 9000, {3, 4}}, {1, 0, 2000, {2, 5}}, {0, 1, 2000, {6, 7}}};
  return limits;
}

TEST_CASE("bounds of types follow the relations, whose blocks begin where rows can be") {
  const RecordLayout layout = LayoutOf(TypedLimits());
  REQUIRE(layout.num_blocks() == 5);
  // Hop 0 has papers alone; hop 1 the authors that it found, too.
  CHECK(layout.block(0).relation == 0);
  CHECK(layout.block(0).max_edges == 10 * 3);
  CHECK(layout.block(1).relation == 1);
  CHECK(layout.block(1).max_edges == 10 * 2);
  CHECK(layout.block(2).hop == 1);
  CHECK(layout.block(2).max_dst == 40);
  CHECK(layout.block(2).max_edges == 40 * 4);
  CHECK(layout.block(3).max_edges == 40 * 5);
  CHECK(layout.block(4).relation == 2);
  CHECK(layout.block(4).dst_type == 1);
  CHECK(layout.block(4).src_type == 0);
  CHECK(layout.block(4).fanout == 7);
  CHECK(layout.block(4).max_dst == 20);
  CHECK(layout.block(4).max_edges == 20 * 7);
  CHECK(layout.nodes(0).max_nodes == 40 + 160 + 140);
  CHECK(layout.nodes(1).max_nodes == 20 + 200);
  CHECK(layout.nodes(2).max_nodes == 0);
  CHECK(layout.nodes(1).max_seeds == 0);
}

TEST_CASE("a hop that draws nothing along a relation has rows of it, and finds nothing by it") {
  for (const RowBound rows : {RowBound::kFanout, RowBound::kRepeats, RowBound::kLabor}) {
    SampleLimits limits = TypedLimits();
    limits.rows = rows;
    limits.relations[1].fanouts = {0, 5};
    const RecordLayout layout = LayoutOf(limits);
    // Papers alone are known to both hops, so relation 2 has no rows.
    REQUIRE(layout.num_blocks() == 4);
    CHECK(layout.block(1).relation == 1);
    CHECK(layout.block(1).fanout == 0);
    CHECK(layout.block(1).max_dst == 10);
    CHECK(layout.block(1).max_edges == 0);
    CHECK(layout.block(3).relation == 1);
    CHECK(layout.block(3).max_edges > 0);
    CHECK(layout.nodes(1).max_nodes == std::min(500U, layout.block(3).max_edges));
  }
}

TEST_CASE("blocks of a relation share their sections, those of others lie behind") {
  SampleLimits limits = TypedLimits();
  limits.expansion = Expansion::kNew;
  limits.hot_ranks = true;
  const RecordLayout layout = LayoutOf(limits);
  REQUIRE(layout.num_blocks() == 5);
  CHECK(layout.block(2).src_at == layout.block(0).src_at);
  CHECK(layout.block(3).indptr_at == layout.block(1).indptr_at);
  CHECK(layout.block(2).max_edges == 30 + 30 * 4);
  uint64_t end = HeaderBytes(3, 5);
  const auto follows = [&end](uint64_t at, uint64_t elements) {
    CHECK(at >= end);
    end = at + 4 * elements + RecordLayout::kSectionSlackBytes;
  };
  for (uint32_t t = 0; t < 3; ++t) follows(layout.nodes(t).nodes_at, layout.nodes(t).max_nodes);
  for (uint32_t b = 2; b < 5; ++b) {
    follows(layout.block(b).indptr_at, layout.block(b).max_dst + 1);
    follows(layout.block(b).src_at, layout.block(b).max_edges);
  }
  for (uint32_t t = 0; t < 3; ++t) follows(layout.nodes(t).ranks_at, layout.nodes(t).max_nodes);
  CHECK(layout.slot_bytes() >= end);
}

TEST_CASE("limits of several types that cannot be are refused by name") {
  const auto refused = [](const SampleLimits& limits, const std::string& word) {
    const Result<RecordLayout> layout = RecordLayout::Of(limits);
    REQUIRE_FALSE(layout.ok());
    CHECK(layout.status().message().find(word) != std::string::npos);
  };
  SampleLimits limits = TypedLimits();
  limits.relations[2].fanouts = {6, -2};
  refused(limits, "fanouts[1] of relation 2 must be -1 or 0 to 4096, not -2");
  limits = TypedLimits();
  limits.relations[1].fanouts = {6};
  refused(limits, "fanouts of relation 1 must name as many hops");
  limits = TypedLimits();
  limits.relations[1].src_type = 3;
  refused(limits, "relation 1 joins a type that is not there");
  limits = TypedLimits();
  limits.types[0].max_seeds = 0;
  limits.types[2].max_seeds = 5;
  refused(limits, "no relation leads to nodes of the seeds' type");
  limits = TypedLimits();
  limits.types.resize(kMaxNodeTypes + 1, {1, 0});
  refused(limits, "types of nodes");
  limits = TypedLimits();
  limits.relations.resize(kMaxRelations + 1, limits.relations[0]);
  refused(limits, "relations");
}

}  // namespace
}  // namespace gnnd
