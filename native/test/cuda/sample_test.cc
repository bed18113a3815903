#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "core/item/item_range.h"
#include "test/cuda/device_sampler.h"
#include "test/cuda/orders.h"
#include "test/support/sampling.h"

// Samples that a device makes, beside those of core/sample: the same nodes in the same order, the
// same blocks, the same bits of weights.

namespace gnnd {
namespace {

using test::DeviceSampler;
using test::Graph;
using test::RandomGraph;
using test::RandomNodes;
using test::SamplerUnderTest;

constexpr BatchKey kKey{0x0123456789ABCDEF, 3, 17};

void CheckSame(const Sample& got, const Sample& wanted) {
  const auto same = [](const auto& a, const auto& b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
  };
  REQUIRE(got.nodes().size() == wanted.nodes().size());
  CHECK(same(got.nodes(), wanted.nodes()));
  REQUIRE(got.num_blocks() == wanted.num_blocks());
  for (uint32_t h = 0; h < got.num_blocks(); ++h) {
    CAPTURE(h);
    CHECK(got.block(h).num_dst == wanted.block(h).num_dst);
    CHECK(got.block(h).num_src == wanted.block(h).num_src);
    CHECK(same(got.block(h).indptr, wanted.block(h).indptr));
    CHECK(same(got.block(h).src, wanted.block(h).src));
    CHECK(same(got.block(h).weight, wanted.block(h).weight));
    CHECK(same(got.block(h).self_weight, wanted.block(h).self_weight));
  }
}

// Compares both samplers on some batches, the device's in every order.
void CheckParity(const TopologyView& topology, const SamplerOptions& options, uint32_t batch_size,
                 uint64_t random_seed, uint32_t batches = 2) {
  SamplerUnderTest twin(topology, options, batch_size, DetectInstructionSet());
  for (const bool hash : {false, true}) {
    CAPTURE(hash);
    test::InOrders([&](uint32_t order) {
      const uint32_t max_blocks = order == 0 ? 3 : 1 + order % 5;
      DeviceSampler device(topology, options, twin.layout(), {hash, max_blocks});
      for (uint32_t b = 0; b < batches; ++b) {
        const BatchKey key{kKey.random_seed, kKey.epoch, kKey.batch + b};
        const uint32_t count = b == 0 ? batch_size : 1 + batch_size / 2;
        const auto seeds = RandomNodes(random_seed + b, topology.num_nodes(), count);
        CAPTURE(b);
        const cuda::SampleState& state = device.Run(key, seeds);
        REQUIRE(state.error == cuda::kNoError);
        CheckSame(device.Last(key, count), twin.Sample(key, seeds));
      }
    });
  }
}

// Rows of every length around a warp's, hubs, empty rows, repeated neighbours, self-loops.
Graph ShapedGraph() {
  Graph graph;
  constexpr uint32_t kNodes = 400;
  std::mt19937_64 generator(5);
  for (uint32_t v = 0; v < kNodes; ++v) {
    uint32_t degree = v % 70;
    if (v % 50 == 7) degree = 1500;
    std::vector<uint32_t> row(degree);
    for (uint32_t& u : row) u = static_cast<uint32_t>(generator() % kNodes);
    if (v % 9 == 0) std::fill(row.begin(), row.end(), v / 2);
    if (degree > 2) row[1] = v;
    graph.AddRow(row);
  }
  return graph;
}

SamplerOptions Fanouts(std::vector<int32_t> fanouts) {
  SamplerOptions options;
  options.fanouts = std::move(fanouts);
  return options;
}

}  // namespace

TEST_CASE("uniform samples of a device are the processor's, whatever the fanout") {
  const Graph graph = ShapedGraph();
  for (const auto& fanouts : std::vector<std::vector<int32_t>>{
           {1}, {5, 3}, {8, 8}, {9}, {16, 2}, {17, 3}, {32}, {33, 2}, {100}, {1000}}) {
    CAPTURE(fanouts[0]);
    CheckParity(graph.view(), Fanouts(fanouts), 20, 11);
  }
}

TEST_CASE("uniform samples agree where all rows are short, long, equal or empty") {
  for (const uint32_t degree : {0U, 1U, 6U, 300U}) {
    Graph graph;
    std::mt19937_64 generator(degree);
    for (uint32_t v = 0; v < 300; ++v) {
      std::vector<uint32_t> row(degree);
      for (uint32_t& u : row) u = static_cast<uint32_t>(generator() % 300);
      graph.AddRow(row);
    }
    CAPTURE(degree);
    CheckParity(graph.view(), Fanouts({5, 4}), 33, degree);
  }
}

TEST_CASE("a node alone, and a graph that is one hub") {
  Graph alone;
  alone.AddRow({});
  CheckParity(alone.view(), Fanouts({3, 2}), 1, 1);
  Graph loop;
  loop.AddRow({0});
  CheckParity(loop.view(), Fanouts({3, 2}), 1, 1);
  Graph hub;
  for (uint32_t v = 0; v < 600; ++v) hub.AddRow(std::vector<uint32_t>(v == 0 ? 5000 : 3, v / 3));
  CheckParity(hub.view(), Fanouts({10, 5}), 64, 2);
}

TEST_CASE("draws with replacement, new nodes only, and weights of a graph convolution agree") {
  const Graph graph = ShapedGraph();
  for (const bool replace : {false, true}) {
    for (const Expansion expansion : {Expansion::kAll, Expansion::kNew}) {
      SamplerOptions options = Fanouts({6, 20, 3});
      options.replace = replace;
      options.expansion = expansion;
      if (!replace) options.weights = EdgeWeights::kGcn;
      CheckParity(graph.view(), options, 9, 3);
    }
  }
}

TEST_CASE("degrees from 2^20 on take two words a draw") {
  Graph graph;
  std::vector<uint32_t> row(kTwoWordDegree + 5);
  for (uint32_t i = 0; i < row.size(); ++i) row[i] = i % 7;
  graph.AddRow(row);
  row.resize(kTwoWordDegree - 1);
  graph.AddRow(row);
  for (uint32_t v = 2; v < 7; ++v) graph.AddRow({0, 1});
  for (const bool replace : {false, true}) {
    SamplerOptions options = Fanouts({20, 40});
    options.replace = replace;
    CheckParity(graph.view(), options, 2, 4);
  }
}

TEST_CASE("whole neighbourhoods agree") {
  const Graph graph = ShapedGraph();
  for (const Expansion expansion : {Expansion::kAll, Expansion::kNew}) {
    SamplerOptions options = Fanouts({kFullNeighbourhood, 4, kFullNeighbourhood});
    options.weights = EdgeWeights::kGcn;
    options.expansion = expansion;
    CheckParity(graph.view(), options, 5, 5, 1);
  }
}

TEST_CASE("LABOR samples agree, windows and whole rows among them") {
  const Graph graph = ShapedGraph();
  for (const uint32_t window : {1U, 4U}) {
    SamplerOptions options = Fanouts({7, kFullNeighbourhood, 2});
    options.algorithm = Algorithm::kLabor;
    options.weights = EdgeWeights::kInverse;
    options.labor.dependency_window = window;
    CheckParity(graph.view(), options, 4, 6);
  }
}

TEST_CASE("samples by edge weight agree, rows that must be scanned among them") {
  Graph graph = ShapedGraph();
  auto weights = test::RandomWeights(9, graph);
  // One neighbour has nearly all of the weight: candidates are that one again and again.
  for (size_t v = 0; v + 1 < graph.indptr.size(); v += 3) {
    if (graph.indptr[v] < graph.indptr[v + 1]) weights[graph.indptr[v]] = 1e9F;
  }
  graph.SetWeights(weights);
  for (const bool replace : {false, true}) {
    for (const auto& fanouts :
         std::vector<std::vector<int32_t>>{{1, 4}, {7, kFullNeighbourhood}, {30}, {50, 3}}) {
      SamplerOptions options = Fanouts(fanouts);
      options.algorithm = Algorithm::kWeighted;
      options.replace = replace;
      CAPTURE(replace);
      CAPTURE(fanouts[0]);
      CheckParity(graph.view(), options, 12, 7);
    }
  }
}

TEST_CASE("random walks agree, with few visits and with many") {
  const Graph graph = ShapedGraph();
  for (const WalkOptions walk : {WalkOptions{4, 3, 0.5}, WalkOptions{1, 1, 0.0},
                                 WalkOptions{20, 7, 0.1}, WalkOptions{3, 30, 0.02}}) {
    for (const Expansion expansion : {Expansion::kAll, Expansion::kNew}) {
      SamplerOptions options = Fanouts({5, 60});
      options.algorithm = Algorithm::kWalk;
      options.weights = EdgeWeights::kVisits;
      options.expansion = expansion;
      options.walk = walk;
      CAPTURE(walk.walks);
      CheckParity(graph.view(), options, 6, 8, 1);
    }
  }
}

TEST_CASE("seeds that stand twice, are no nodes or find too much are an error, not a sample") {
  const Graph graph = RandomGraph(1, 100, 20);
  const SamplerOptions options = Fanouts({5, 5});
  const RecordLayout layout = test::LayoutFor(graph.view(), options, 10);
  for (const bool hash : {false, true}) {
    DeviceSampler device(graph.view(), options, layout, {hash});
    CHECK(device.Run(kKey, std::vector<uint32_t>{3, 4, 3}).error == cuda::kSeedTwice);
    CHECK(device.Run(kKey, std::vector<uint32_t>{3, 100}).error == cuda::kSeedUnknown);
    CHECK(device.Run(kKey, std::vector<uint32_t>{0xFFFFFFFF}).error == cuda::kSeedUnknown);
    CHECK(device.Run(kKey, std::vector<uint32_t>{3, 4}).error == cuda::kNoError);
    const auto seeds = RandomNodes(2, 100, 10);
    CHECK(device.Run(kKey, seeds).error == cuda::kNoError);
    const uint32_t rows = device.Run(kKey, seeds).hops[1].num_dst;
    device.max_rows(1) = rows;
    CHECK(device.Run(kKey, seeds).error == cuda::kNoError);
    device.max_rows(1) = rows - 1;
    CHECK(device.Run(kKey, seeds).error == cuda::kSampleTooLarge);
    device.max_rows(1) = rows;
    device.max_edges() = 6;
    CHECK(device.Run(kKey, seeds).error == cuda::kSampleTooLarge);
    // A hash table of 32 slots for some 50 nodes is full, and no thread looks for ever.
    DeviceSampler few(graph.view(), options, layout, {hash});
    few.LimitNodes(12);
    CHECK(few.Run(kKey, seeds).error == cuda::kSampleTooLarge);
  }
}

TEST_CASE("the seeds of a batch are the processor's") {
  const auto train_nodes = RandomNodes(8, 5000, 3000);
  for (const uint32_t batch_size : {1U, 255U, 1000U, 3000U}) {
    const BatchKey key{kKey.random_seed, 2, (3000 - 1) / batch_size};
    std::vector<uint32_t> wanted;
    SeedsOf(key, train_nodes, batch_size, &wanted);
    test::InOrders([&](uint32_t) {
      std::vector<uint32_t> seeds(wanted.size());
      cuda::SeedsOfBatch({nullptr, 2}, key, train_nodes.data(), 3000, key.batch * batch_size,
                         static_cast<uint32_t>(seeds.size()), seeds.data());
      CHECK(seeds == wanted);
    });
  }
}

}  // namespace gnnd
