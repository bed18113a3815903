#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/mapping.h"
#include "core/item/item_range.h"
#include "core/sample/device_sampler.h"
#include "test/device/support.h"
#include "test/support/sampling.h"

// Records that a device's sampler leaves in slots, beside those of core/sample. That its kernels
// are right is shown in test/cuda; here it is sizes, sections, streams and what goes wrong.

namespace gnnd {
namespace {

using test::Get;
using test::Graph;
using test::SamplerUnderTest;
using test::SimPlugin;

constexpr uint64_t kRandomSeed = 77;
constexpr uint32_t kBatchSize = 30;

struct Case {
  std::string name;
  SamplerOptions options;
  bool hash = false;
};

SamplerOptions Options(std::vector<int32_t> fanouts) {
  SamplerOptions options;
  options.fanouts = std::move(fanouts);
  return options;
}

std::vector<Case> Cases() {
  std::vector<Case> cases{{"uniform", Options({5, 3})}, {"hash", Options({5, 3}), true}};
  cases.push_back({"new nodes, full rows", Options({4, -1, 2})});
  cases.back().options.expansion = Expansion::kNew;
  cases.push_back({"GCN", Options({6, 2})});
  cases.back().options.weights = EdgeWeights::kGcn;
  cases.push_back({"weighted", Options({5, 5})});
  cases.back().options.algorithm = Algorithm::kWeighted;
  cases.push_back({"LABOR", Options({5, -1})});
  cases.back().options.algorithm = Algorithm::kLabor;
  cases.back().options.weights = EdgeWeights::kInverse;
  cases.push_back({"walks", Options({5, 3})});
  cases.back().options.algorithm = Algorithm::kWalk;
  cases.back().options.weights = EdgeWeights::kVisits;
  return cases;
}

Graph WeightedGraph() {
  Graph graph = test::RandomGraph(5, 500, 40);
  graph.SetWeights(test::RandomWeights(6, graph));
  return graph;
}

// A device's sampler with two slots beside each other, and its twin.
struct Pair {
  Pair(const Device& device, const Graph& graph, const Case& tried, uint32_t depth)
      : train(test::RandomNodes(3, 500, 130)),
        twin(graph.view(), tried.options, kBatchSize, DetectInstructionSet()),
        slots(Get(Mapping::Anonymous(2 * RoundUp(twin.layout().slot_bytes(), kPageBytes)))),
        sampler(Get(DeviceSampler::Create(device, graph.view(), tried.options, twin.layout(),
                                          {kRandomSeed, train, kBatchSize, depth, tried.hash}))) {
    std::fill_n(slots.data(), slots.size(), std::byte{0x5A});
  }

  std::span<std::byte> slot(uint32_t which) const {
    return {slots.data() + which * (slots.size() / 2), slots.size() / 2};
  }

  // The record of the slot is what the twin makes of the batch.
  void Check(uint32_t epoch, uint32_t batch, std::span<const std::byte> made) {
    const BatchKey key{kRandomSeed, epoch, batch};
    std::vector<uint32_t> seeds;
    SeedsOf(key, train, kBatchSize, &seeds);
    const uint64_t wanted = test::ContentHash(twin.Sample(key, seeds));
    const Sample sample = Get(OpenRecord(made, true));
    CHECK(test::ContentHash(sample) == wanted);
    CHECK(sample.num_seeds() == seeds.size());
    CHECK(sample.key().batch == batch);
    // Sizes, too: the queue's account counts them.
    const auto& header = *reinterpret_cast<const RecordHeader*>(made.data());
    const auto& own = *reinterpret_cast<const RecordHeader*>(twin.slot().data());
    CHECK(header.payload_bytes == own.payload_bytes);
    CHECK(header.extent_bytes == own.extent_bytes);
  }

  std::vector<uint32_t> train;
  SamplerUnderTest twin;
  Mapping slots;
  std::unique_ptr<DeviceSampler> sampler;
};

TEST_CASE("records of a device are the processor's, each batch of an epoch, the short one too") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  const Graph graph = WeightedGraph();
  for (const Case& tried : Cases()) {
    CAPTURE(tried.name);
    Pair pair(*device, graph, tried, 1);
    for (uint32_t batch = 0; batch < NumBatches(130, kBatchSize); ++batch) {
      gnnd_device_sample_report report{};
      test::Check(pair.sampler->Start(2, batch, pair.slot(0)));
      test::Check(pair.sampler->Finish(&report));
      pair.Check(2, batch, pair.slot(0));
      CHECK(report.direct_bytes == 0);
      CHECK(report.staged_bytes > 0);
    }
    gnnd_device_sample_report report{};
    CHECK(!pair.sampler->Start(2, NumBatches(130, kBatchSize), pair.slot(0)).ok());
    static_cast<void>(report);
  }
}

TEST_CASE("a batch is computed while the one before is copied, in any order that streams allow") {
  const Graph graph = WeightedGraph();
  for (int seed = 0; seed < 6; ++seed) {
    const SimPlugin plugin = SimPlugin::InOrder(seed);
    const auto device = plugin.Open();
    Pair pair(*device, graph, Cases()[0], 2);
    const std::span<std::byte> slots(pair.slots.data(), pair.slots.size());
    const auto registered = Get(HostRegistration::Register(*device, slots));
    gnnd_device_sample_report report{};
    test::Check(pair.sampler->Start(1, 0, pair.slot(0)));
    for (uint32_t batch = 1; batch < 4; ++batch) {
      test::Check(pair.sampler->Start(1, batch, pair.slot(batch % 2)));
      // No third one.
      CHECK(!pair.sampler->Start(1, 4, pair.slot(0)).ok());
      test::Check(pair.sampler->Finish(&report));
      pair.Check(1, batch - 1, pair.slot((batch - 1) % 2));
      CHECK(report.staged_bytes == 0);
    }
    test::Check(pair.sampler->Finish(&report));
    pair.Check(1, 3, pair.slot(1));
  }
}

TEST_CASE("hot ranks of input nodes are marked where records carry them, with two in hand") {
  const Graph graph = WeightedGraph();
  const SamplerOptions options = Options({5, 3});
  SampleLimits limits = LimitsOf(500, graph.view().num_edges(), kBatchSize, options);
  limits.hot_ranks = true;
  const RecordLayout layout = Get(RecordLayout::Of(limits));
  const std::vector<uint32_t> train = test::RandomNodes(3, 500, 130);
  std::vector<uint32_t> ranks(500);
  for (uint32_t v = 0; v < 500; ++v) ranks[v] = (v * 7 + 3) % 500;
  for (int seed = 0; seed < 6; ++seed) {
    const SimPlugin plugin = SimPlugin::InOrder(seed);
    const auto device = plugin.Open();
    const auto sampler = Get(DeviceSampler::Create(
        *device, graph.view(), options, layout, {kRandomSeed, train, kBatchSize, 2, false, ranks}));
    const uint64_t bytes = RoundUp(layout.slot_bytes(), kPageBytes);
    const Mapping slots = Get(Mapping::Anonymous(2 * bytes));
    for (uint32_t batch = 0; batch < 2; ++batch) {
      test::Check(sampler->Start(1, batch, {slots.data() + batch * bytes, bytes}));
    }
    for (uint32_t batch = 0; batch < 2; ++batch) {
      gnnd_device_sample_report report{};
      test::Check(sampler->Finish(&report));
      const Sample sample = Get(OpenRecord({slots.data() + batch * bytes, bytes}, true));
      REQUIRE(sample.ranks().size() == sample.nodes().size());
      for (size_t i = 0; i < sample.nodes().size(); ++i) {
        REQUIRE(sample.ranks()[i] == ranks[sample.nodes()[i]]);
      }
    }
  }
}

TEST_CASE("what is under way when a sampler goes leaves its memory free and its device usable") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  const Graph graph = WeightedGraph();
  {
    const Pair pair(*device, graph, Cases()[0], 2);
    test::Check(pair.sampler->Start(1, 0, pair.slot(0)));
    test::Check(pair.sampler->Start(1, 1, pair.slot(1)));
  }
  const gnnd_device_memory memory = Get(device->Memory());
  CHECK(memory.used_bytes[GNND_PURPOSE_TOPOLOGY] == 0);
  CHECK(memory.used_bytes[GNND_PURPOSE_WORKSPACE] == 0);
  CHECK(memory.peak_bytes > 0);
}

TEST_CASE("a graph or workspaces beyond the budget are refused with sizes, and leave nothing") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const Graph graph = WeightedGraph();
  const SamplerOptions options = Options({5, 3});
  const RecordLayout layout = test::LayoutFor(graph.view(), options, kBatchSize);
  const std::vector<uint32_t> train = test::RandomNodes(3, 500, 130);
  for (const uint64_t budget : {uint64_t{4096}, uint64_t{60'000}}) {
    const auto device = plugin.Open({.budget_bytes = budget});
    const auto refused = DeviceSampler::Create(*device, graph.view(), options, layout,
                                               {kRandomSeed, train, kBatchSize, 2});
    REQUIRE(!refused.ok());
    CHECK(refused.status().code() == Code::kDeviceMemory);
    CHECK(refused.status().message().find("of a budget of " + std::to_string(budget)) !=
          std::string::npos);
    const gnnd_device_memory memory = Get(device->Memory());
    CHECK(memory.used_bytes[GNND_PURPOSE_TOPOLOGY] == 0);
    CHECK(memory.used_bytes[GNND_PURPOSE_WORKSPACE] == 0);
  }
}

TEST_CASE("a device that is lost or faults in mid-epoch says so, at once and from then on") {
  const Graph graph = WeightedGraph();
  for (const auto& [fault, code] : std::vector<std::pair<std::string, Code>>{
           {"lost:40", Code::kDeviceLost}, {"launch:40", Code::kDeviceFailed}}) {
    const SimPlugin plugin(SimPlugin::Environment{{"GNND_SIM_FAULT", fault}});
    const auto device = plugin.Open();
    Pair pair(*device, graph, Cases()[0], 1);
    Status status = Status::Ok();
    for (uint32_t round = 0; round < 20 && status.ok(); ++round) {
      gnnd_device_sample_report report{};
      status = pair.sampler->Start(round, 0, pair.slot(0));
      if (status.ok()) status = pair.sampler->Finish(&report);
    }
    CHECK(status.code() == code);
    CHECK(pair.sampler->Start(99, 0, pair.slot(0)).code() == code);
    // The slot shows no record.
    CHECK(!OpenRecord(pair.slot(0)).ok());
  }
}

TEST_CASE("a training node that is none of the graph's, or stands twice, is no sample") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  const Graph graph = WeightedGraph();
  const SamplerOptions options = Options({3});
  const RecordLayout layout = test::LayoutFor(graph.view(), options, 4);
  for (const std::vector<uint32_t>& train :
       {std::vector<uint32_t>{1, 2, 900}, std::vector<uint32_t>{1, 2, 1}}) {
    std::vector<std::byte> slot(layout.slot_bytes() + 8);
    const auto sampler =
        Get(DeviceSampler::Create(*device, graph.view(), options, layout, {1, train, 4}));
    gnnd_device_sample_report report{};
    test::Check(sampler->Start(0, 0, slot));
    CHECK(sampler->Finish(&report).code() == Code::kInternal);
  }
}

}  // namespace
}  // namespace gnnd
