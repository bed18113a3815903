#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/draw/philox.h"
#include "core/executor/hot_rank_marker.h"
#include "core/graph/node_numbers.h"
#include "core/item/item_range.h"
#include "core/prepare/presample.h"
#include "core/sample/sampler.h"
#include "test/support/reference.h"
#include "test/support/typed_graphs.h"

namespace gnnd {
namespace {

using test::RandomTypedGraph;
using test::TypedGraph;

constexpr uint32_t kBatch = 8;
constexpr uint64_t kRandomSeed = 7;

const SamplerOptions kOptions{.fanouts = {3, 2}};

std::vector<uint32_t> AllOfTypeZero(const TypedGraph& graph) {
  std::vector<uint32_t> nodes(graph.num_nodes[0]);
  std::iota(nodes.begin(), nodes.end(), 0U);
  return nodes;
}

// Samples a graph of several types in memory, as an executor's work; seeds are of type 0.
class TypedWork final : public SampleWork {
 public:
  explicit TypedWork(const TypedGraph& graph)
      : train_(AllOfTypeZero(graph)),
        layout_(LayoutWithRanks(graph.view())),
        sampler_(graph.view(), kOptions, layout_, DetectInstructionSet()) {}

  Status Start(const SampleTask& task) override {
    const BatchKey key{kRandomSeed, task.epoch, task.batch};
    SeedsOf(key, train_, kBatch, &seeds_);
    return sampler_.Sample(key, seeds_, task.slot);
  }
  Status Finish(const SampleTask&, SampleReport*) override { return Status::Ok(); }

  const RecordLayout& layout() const { return layout_; }
  uint32_t batches() const { return NumBatches(static_cast<uint32_t>(train_.size()), kBatch); }

 private:
  static RecordLayout LayoutWithRanks(const GraphView& graph) {
    SampleLimits limits = LimitsOf(graph, 0, kBatch, kOptions);
    limits.hot_ranks = true;
    return *RecordLayout::Of(limits);
  }

  std::vector<uint32_t> train_;
  std::vector<uint32_t> seeds_;
  RecordLayout layout_;
  Sampler sampler_;
};

TEST_CASE("pre-sampling several types counts each node by its number, whatever the threads") {
  const TypedGraph graph = RandomTypedGraph(3, {100, 65, 64}, 6, 8);
  const NodeNumbers numbers(graph.num_nodes);
  REQUIRE(numbers.end() == 128 + 128 + 64);
  TypedWork first(graph);
  TypedWork second(graph);
  constexpr uint32_t kEpochs = 2;
  std::vector<uint32_t> expected(numbers.end());
  for (uint32_t k = 0; k < kEpochs; ++k) {
    for (uint32_t batch = 0; batch < first.batches(); ++batch) {
      const BatchKey key{kRandomSeed, kFirstPresampleEpoch - k, batch};
      std::vector<uint32_t> seeds;
      SeedsOf(key, AllOfTypeZero(graph), kBatch, &seeds);
      const TypedReferenceSample sample = TypedReference(graph.view(), kOptions, key, seeds, 0);
      for (uint32_t t = 0; t < 3; ++t) {
        for (const uint32_t node : sample.nodes[t]) ++expected[numbers.begin(t) + node];
      }
    }
  }
  // Each node of type 0 is a seed once an epoch, at least.
  CHECK(std::all_of(expected.begin(), expected.begin() + 100,
                    [](uint32_t count) { return count >= kEpochs; }));
  CHECK(std::accumulate(expected.begin() + 128, expected.end(), 0U) > 0);
  for (const auto& works : {std::vector<SampleWork*>{&first}, {&first, &second}}) {
    Presampler presampler(works, first.layout().slot_bytes(), numbers, first.batches());
    const Result<EpochFootprint> footprint = presampler.Presample(kEpochs);
    REQUIRE_MESSAGE(footprint.ok(), footprint.status().message());
    CHECK(footprint->counts == expected);
  }
}

TEST_CASE("records of several types carry the hot rank of each node of each type") {
  const TypedGraph graph = RandomTypedGraph(3, {100, 65, 64}, 6, 8);
  const NodeNumbers numbers(graph.num_nodes);
  std::vector<uint32_t> rank_of(numbers.end());
  for (uint32_t v = 0; v < rank_of.size(); ++v) {
    rank_of[v] = (v * 7 + 3) % static_cast<uint32_t>(rank_of.size());
  }
  constexpr uint32_t kCached = 150;
  auto inner = std::make_unique<TypedWork>(graph);
  const RecordLayout layout = inner->layout();
  std::vector<HotRankMarker::TypeRanks> types;
  for (uint32_t t = 0; t < 3; ++t) {
    const auto ranks = std::span(rank_of).subspan(numbers.begin(t), graph.num_nodes[t]);
    types.push_back({RankTable(ranks, kCached), layout.nodes(t).ranks_at});
  }
  HotRankMarker work(std::move(inner), std::move(types));
  std::vector<std::byte> slot(layout.slot_bytes());
  uint32_t cached = 0;
  uint32_t others = 0;
  for (uint32_t batch = 0; batch < 5; ++batch) {
    SampleReport report;
    REQUIRE(work.Sample({1, batch, slot}, &report).ok());
    const Result<Sample> sample = OpenRecord(slot, true);
    REQUIRE_MESSAGE(sample.ok(), sample.status().message());
    CHECK(report.payload_bytes == OwnHeader(slot).payload_bytes);
    for (uint32_t t = 0; t < 3; ++t) {
      CAPTURE(t);
      const auto nodes = sample->nodes(t);
      const auto ranks = sample->ranks(t);
      REQUIRE(ranks.size() == nodes.size());
      for (size_t i = 0; i < nodes.size(); ++i) {
        const uint32_t rank = rank_of[numbers.begin(t) + nodes[i]];
        REQUIRE(ranks[i] == (rank < kCached ? rank : kNoRank));
        ++(rank < kCached ? cached : others);
      }
    }
  }
  CHECK(cached > 0);
  CHECK(others > 0);
}

}  // namespace
}  // namespace gnnd
