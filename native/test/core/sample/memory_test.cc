#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "core/feature/hot_order.h"
#include "core/item/item_range.h"
#include "test/support/graphs.h"
#include "test/support/sampling.h"

// Tests how much memory a Sampler holds beside the graph, and that it allocates nothing once it
// runs.
//
// This file replaces the program's operator new to count allocations; memory that comes straight
// from the kernel (HugeArray) is counted by its owner.

namespace {

thread_local uint64_t allocations = 0;
thread_local int64_t live_bytes = 0;

void* Counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  ++allocations;
  live_bytes += static_cast<int64_t>(malloc_usable_size(memory));
  return memory;
}

void Freed(void* memory) {
  if (memory == nullptr) return;
  live_bytes -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

void* operator new(size_t size) { return Counted(std::malloc(std::max<size_t>(size, 1))); }
void* operator new(size_t size, std::align_val_t alignment) {
  const auto to = static_cast<size_t>(alignment);
  return Counted(std::aligned_alloc(to, (size + to - 1) / to * to));
}
// std::stable_sort asks by this one; left out, a sanitizer would answer it with memory of its own.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  try {
    return ::operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { Freed(memory); }
void operator delete(void* memory, size_t) noexcept { Freed(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Freed(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { Freed(memory); }

namespace gnnd {
namespace {

constexpr uint32_t kNodes = 120'000;
constexpr uint32_t kHub = 7;
constexpr uint32_t kBatchSize = 600;
constexpr uint32_t kBatches = 3;

// The rule of sampler.h; a seed counts as an edge.
constexpr uint64_t BoundOf(uint64_t edges) {
  return (uint64_t{1} << 20) + 16 * uint64_t{kNodes} + 64 * (edges + kBatchSize);
}

// Every node is a neighbour of the hub, one of them outweighs all others by far: drawing without
// replacement from such a row ends in a scan, which is what takes the most memory.
const test::Graph& TheGraph() {
  static const test::Graph graph = [] {
    const test::Graph random = test::RandomGraph(41, kNodes, 40);
    test::Graph made;
    std::vector<uint32_t> row;
    for (uint32_t v = 0; v < kNodes; ++v) {
      row.assign(random.indices.begin() + static_cast<std::ptrdiff_t>(random.indptr[v]),
                 random.indices.begin() + static_cast<std::ptrdiff_t>(random.indptr[v + 1]));
      if (v == kHub) row = test::RandomNodes(42, kNodes, kNodes);
      made.AddRow(row);
    }
    std::vector<float> weights = test::RandomWeights(43, made);
    const auto hub = weights.begin() + static_cast<std::ptrdiff_t>(made.indptr[kHub]);
    std::fill_n(hub, kNodes, 1.0F);
    *hub = 1e12F;
    made.SetWeights(weights);
    return made;
  }();
  return graph;
}

struct Case {
  std::string name;
  SamplerOptions options;
};

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  const auto add = [&cases](std::string name, SamplerOptions options) {
    for (const bool hashed : {false, true}) {
      for (const Expansion expansion : {Expansion::kAll, Expansion::kNew}) {
        options.max_dense_table_bytes = hashed ? 0 : 200'000'000;
        options.expansion = expansion;
        const std::string how = std::string(hashed ? ", hashed" : ", dense") +
                                (expansion == Expansion::kAll ? ", all" : ", new");
        cases.push_back({name + how, options});
      }
    }
  };
  const std::vector<int32_t> fanouts = {10, 10};
  add("uniform", {.fanouts = fanouts, .weights = EdgeWeights::kNone});
  add("uniform, GCN", {.fanouts = fanouts, .weights = EdgeWeights::kGcn});
  add("uniform, large fanout", {.fanouts = {3000, 2}, .weights = EdgeWeights::kNone});
  add("whole rows", {.fanouts = {kFullNeighbourhood, 5}, .weights = EdgeWeights::kNone});
  SamplerOptions options{.fanouts = fanouts, .weights = EdgeWeights::kNone};
  options.replace = true;
  add("uniform, with replacement", options);
  options.algorithm = Algorithm::kWeighted;
  add("weighted, with replacement", options);
  options.replace = false;
  add("weighted", options);
  SamplerOptions labor{.fanouts = fanouts, .weights = EdgeWeights::kInverse};
  labor.algorithm = Algorithm::kLabor;
  add("LABOR", labor);
  SamplerOptions local{.fanouts = fanouts, .weights = EdgeWeights::kShares};
  local.locality.max_scale = 8;
  add("favoured neighbours", local);
  SamplerOptions walk{.fanouts = {5, 5, 5}, .weights = EdgeWeights::kVisits};
  walk.algorithm = Algorithm::kWalk;
  add("walk", walk);
  walk.walk = {kMaxWalks, kMaxWalkLength, 0.05};
  walk.fanouts = {20};
  add("most walks", walk);
  return cases;
}

// Seeds of a batch, the hub among them.
void FillSeeds(uint32_t batch, std::span<const uint32_t> train, std::vector<uint32_t>* seeds) {
  SeedsOf({5, 0, batch}, train, kBatchSize, seeds);
  if (std::ranges::find(*seeds, kHub) == seeds->end()) seeds->front() = kHub;
}

}  // namespace

TEST_CASE("a Sampler's own memory keeps to its bound, and batches take no more") {
  const test::Graph& graph = TheGraph();
  const std::vector<uint32_t> train = test::RandomNodes(44, kNodes, kBatches * kBatchSize);
  for (const Case& it : AllCases()) {
    INFO(it.name);
    std::vector<uint32_t> seeds;
    seeds.reserve(kBatchSize);
    const RecordLayout layout = test::LayoutFor(graph.view(), it.options, kBatchSize);
    std::vector<std::byte> slot(layout.slot_bytes());
    const uint32_t scale = it.options.locality.on() ? kScaleMost : kScaleOne;
    const std::vector<uint8_t> favoured(kNodes, 1);
    TopologyView topology = graph.view();
    topology.favoured = favoured;
    const int64_t before = live_bytes;
    Sampler sampler(topology, it.options, layout, DetectInstructionSet());
    uint64_t most_edges = 0;
    uint64_t most_nodes = 0;
    uint64_t while_it_ran = 0;
    for (const bool warm : {false, true}) {
      const uint64_t workspace = sampler.workspace_bytes();
      for (uint32_t batch = 0; batch < kBatches; ++batch) {
        FillSeeds(batch, train, &seeds);
        const uint64_t allocated = allocations;
        const bool sampled = sampler.Sample({5, 0, batch}, seeds, slot, scale).ok();
        while_it_ran += warm ? allocations - allocated : 0;
        REQUIRE(sampled);
        const Sample sample = OwnSample(slot);
        most_edges = std::max(most_edges, sample.num_edges());
        most_nodes = std::max<uint64_t>(most_nodes, sample.nodes().size());
      }
      if (warm) CHECK(sampler.workspace_bytes() == workspace);
    }
    CHECK(while_it_ran == 0);
    CHECK(sampler.workspace_bytes() <= BoundOf(most_edges));
    // Nothing is left out: what came from the heap is part of what is reported, beside the table
    // and GCN's degrees, which do not come from there. Options and layout take a few hundred bytes.
    const bool hashed = it.options.max_dense_table_bytes == 0;
    const uint64_t table_at_least = hashed ? 16 * most_nodes : 4 * uint64_t{kNodes};
    const uint64_t gcn = it.options.weights == EdgeWeights::kGcn ? 16 * most_nodes : 0;
    CHECK(live_bytes - before <=
          static_cast<int64_t>(sampler.workspace_bytes() - table_at_least - gcn + 4096));
  }
}

TEST_CASE("only the row that had to be scanned takes memory by its length") {
  const test::Graph& graph = TheGraph();
  SamplerOptions options{.fanouts = {10}, .weights = EdgeWeights::kNone};
  options.algorithm = Algorithm::kWeighted;
  test::SamplerUnderTest sampler(graph.view(), options, 2, DetectInstructionSet());
  const uint64_t fresh = sampler.workspace_bytes();
  const std::vector<uint32_t> others = {kHub + 1, kHub + 2};
  sampler.Sample({1, 0, 0}, others);
  const uint64_t small = sampler.workspace_bytes() - fresh;
  CHECK(small <= 8 * 40);
  const std::vector<uint32_t> hub = {kHub};
  CHECK(sampler.Sample({1, 0, 1}, hub).block(0).src.size() == 10);
  CHECK(sampler.workspace_bytes() - fresh == 8 * uint64_t{kNodes});
}

TEST_CASE("marking hot ranks allocates nothing") {
  std::vector<uint32_t> ranks(kNodes);
  for (uint32_t v = 0; v < kNodes; ++v) ranks[v] = kNodes - 1 - v;
  const RankTable table(ranks, 1000);
  const std::vector<uint32_t> nodes = test::RandomNodes(45, kNodes, 5000);
  std::vector<uint32_t> marks(nodes.size());
  const uint64_t allocated = allocations;
  table.Mark(nodes, marks.data());
  CHECK(allocations == allocated);
}

}  // namespace gnnd
