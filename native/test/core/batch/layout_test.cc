#include "core/batch/layout.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/batch/record.h"

namespace gnnd {
namespace {

RecordLayout LayoutOf(const SampleLimits& limits) {
  const Result<RecordLayout> layout = RecordLayout::Of(limits);
  REQUIRE_MESSAGE(layout.ok(), layout.status().message());
  return *layout;
}

TEST_CASE("bounds multiply by the fanouts until the graph ends them") {
  const RecordLayout layout = LayoutOf({1000, 5000, 10, {15, 10, 5}, false});
  CHECK(layout.max_seeds() == 10);
  CHECK(layout.hop(0).max_dst == 10);
  CHECK(layout.hop(0).max_edges == 150);
  CHECK(layout.hop(1).max_dst == 160);
  CHECK(layout.hop(1).max_edges == 1600);
  CHECK(layout.hop(2).max_dst == 1000);
  CHECK(layout.hop(2).max_edges == 5000);
  CHECK(layout.max_nodes() == 1000);
}

TEST_CASE("a full neighbourhood is bounded by the graph") {
  const RecordLayout layout = LayoutOf({1000, 700, 10, {kFullNeighbourhood, 3}, false});
  CHECK(layout.hop(0).max_edges == 700);
  CHECK(layout.hop(1).max_dst == 710);
  CHECK(layout.hop(1).max_edges == 700);
  CHECK(layout.max_nodes() == 1000);
}

TEST_CASE("a batch larger than the graph is bounded by it") {
  CHECK(LayoutOf({20, 40, 1000, {2}, false}).max_seeds() == 20);
}

TEST_CASE("sections are aligned, in order and far enough apart") {
  const RecordLayout layout = LayoutOf({100'000, 1'000'000, 512, {7, 9}, true, true});
  uint64_t end = sizeof(RecordHeader);
  const auto follows = [&end](uint64_t at, uint64_t elements) {
    CHECK(at % RecordLayout::kSectionAlignment == 0);
    CHECK(at >= end);
    end = at + 4 * elements + RecordLayout::kSectionSlackBytes;
  };
  follows(layout.nodes_at(), layout.max_nodes());
  for (uint32_t hop = 0; hop < layout.num_hops(); ++hop) {
    const HopLayout& place = layout.hop(hop);
    follows(place.indptr_at, place.max_dst + 1);
    follows(place.src_at, place.max_edges);
    follows(place.weight_at, place.max_edges);
    follows(place.self_weight_at, place.max_dst);
  }
  CHECK(layout.slot_bytes() >= end);
  CHECK(layout.slot_bytes() < end + RecordLayout::kSectionAlignment);
}

TEST_CASE("a record without edge weights has no room for them") {
  const RecordLayout layout = LayoutOf({1000, 5000, 10, {5}, false});
  CHECK(layout.hop(0).weight_at == 0);
  CHECK(layout.hop(0).self_weight_at == 0);
  CHECK(layout.slot_bytes() < LayoutOf({1000, 5000, 10, {5}, true, true}).slot_bytes());
}

TEST_CASE("where a node has one row, a hop adds rows for what the hop before found") {
  SampleLimits limits{1'000'000, 50'000'000, 10, {15, 10, 5}, true, true};
  limits.expansion = Expansion::kNew;
  const RecordLayout layout = LayoutOf(limits);
  CHECK(layout.hop(0).max_edges == 150);
  CHECK(layout.hop(1).max_dst == 160);
  CHECK(layout.hop(1).max_edges == 150 + 1500);
  CHECK(layout.hop(2).max_dst == 1660);
  CHECK(layout.hop(2).max_edges == 1650 + 7500);
  CHECK(layout.max_nodes() == 9160);
  CHECK(layout.hop(2).indptr_at == layout.hop(0).indptr_at);
  CHECK(layout.hop(1).src_at == layout.hop(0).src_at);
  CHECK(layout.hop(0).src_at >= layout.hop(0).indptr_at + 4 * 1661);
  CHECK(layout.hop(0).weight_at >= layout.hop(0).src_at + 4 * 9150);
  CHECK(layout.hop(2).self_weight_at >= layout.hop(0).weight_at + 4 * 9150);
}

TEST_CASE("edges that repeat are not bounded by the graph's") {
  SampleLimits limits{1000, 50, 10, {15}};
  CHECK(LayoutOf(limits).hop(0).max_edges == 50);
  limits.rows = RowBound::kRepeats;
  CHECK(LayoutOf(limits).hop(0).max_edges == 150);
}

TEST_CASE("a row of LABOR has room for more than its fanout") {
  SampleLimits limits{1000, 100'000, 10, {15}};
  limits.rows = RowBound::kLabor;
  CHECK(LayoutOf(limits).hop(0).max_edges == 10 * (4 * 15 + 64));
}

TEST_CASE("limits that cannot be are refused by name") {
  const SampleLimits good{1000, 5000, 10, {5, 5}, false};
  const auto refused = [](SampleLimits limits, const std::string& word) {
    const Result<RecordLayout> layout = RecordLayout::Of(limits);
    REQUIRE_FALSE(layout.ok());
    CHECK(layout.status().code() == Code::kInvalidArgument);
    CHECK(layout.status().message().find(word) != std::string::npos);
  };
  SampleLimits limits = good;
  limits.num_nodes = 0;
  refused(limits, "no nodes");
  limits = good;
  limits.batch_size = 0;
  refused(limits, "batch_size");
  limits = good;
  for (const std::vector<int32_t>& fanouts :
       {std::vector<int32_t>{}, std::vector<int32_t>(kMaxHops + 1, 2)}) {
    limits.fanouts = fanouts;
    refused(limits, "1 to 8 hops");
  }
  for (const int32_t fanout : {0, -2, kMaxFanout + 1}) {
    limits.fanouts = {5, fanout};
    refused(limits, "fanouts[1]");
  }
}

TEST_CASE("a bound beyond 32 bits is refused, one at the border is not") {
  constexpr uint64_t kBorder = 0xFFFFFFFF;
  const SampleLimits largest{2'000'000'000, kBorder, 10, {kFullNeighbourhood}, false};
  CHECK(LayoutOf(largest).hop(0).max_edges == kBorder);
  SampleLimits beyond = largest;
  beyond.num_edges = kBorder + 1;
  const Result<RecordLayout> layout = RecordLayout::Of(beyond);
  REQUIRE_FALSE(layout.ok());
  CHECK(layout.status().code() == Code::kInvalidArgument);
  CHECK(layout.status().message().find("hop 0") != std::string::npos);
  // Sampled hops are bounded by seeds and fanouts, however large the graph.
  beyond.fanouts = {100, 100};
  CHECK(LayoutOf(beyond).hop(1).max_edges == 101'000);
}

}  // namespace
}  // namespace gnnd
