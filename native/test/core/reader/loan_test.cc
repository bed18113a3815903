#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "core/base/cpu.h"
#include "test/core/reader/lending.h"
#include "test/core/reader/reader_library.h"
#include "test/support/equals_reference.h"
#include "test/support/graphs.h"

// Batches of a true sampler, as a user's process gets them: each must be the scalar reference's.

namespace gnnd::test {
namespace {

constexpr uint32_t kNodes = 400;
constexpr uint32_t kBatchSize = 37;
constexpr uint64_t kBatches = 3;
constexpr uint64_t kRandomSeed = 11;
constexpr uint32_t kEpochs = 2;

std::vector<uint32_t> SeedsOfBatch(uint32_t epoch, uint32_t batch) {
  return RandomNodes(1000 + epoch * kBatches + batch, kNodes, kBatchSize);
}

// A Sampler over a graph that a test owns.
class GraphWork final : public SampleWork {
 public:
  GraphWork(const TopologyView& topology, const SamplerOptions& options, const RecordLayout& layout)
      : sampler_(topology, options, layout, DetectInstructionSet()) {}

  Status Start(const SampleTask& task) override {
    return sampler_.Sample({kRandomSeed, task.epoch, task.batch},
                           SeedsOfBatch(task.epoch, task.batch), task.slot, task.scale);
  }
  Status Finish(const SampleTask& task, SampleReport* report) override {
    const RecordHeader& header = OwnHeader(task.slot);
    report->payload_bytes = header.payload_bytes;
    report->extent_bytes = header.extent_bytes;
    return Status::Ok();
  }

 private:
  Sampler sampler_;
};

constexpr Lending::Job kJob{kBatches, kEpochs, kBatchSize, kNodes};

// A job that lends such batches.
struct GraphLending {
  GraphLending(const TopologyView& topology, const SamplerOptions& options)
      : layout(LayoutFor(topology, options, kBatchSize)),
        job(kJob, std::make_unique<GraphWork>(topology, options, layout), layout) {}

  const RecordLayout layout;
  const Lending job;
};

// A graph's edges, numbered in the order of its rows, as the reader wants them.
struct Numbered {
  explicit Numbered(const Graph& graph) : indptr(graph.indptr.begin(), graph.indptr.end()) {
    numbers.resize(graph.indices.size());
    for (uint32_t e = 0; e < numbers.size(); ++e) numbers[e] = e;
    for (size_t v = 0; v + 1 < indptr.size(); ++v) {
      std::stable_sort(
          numbers.begin() + indptr[v], numbers.begin() + indptr[v + 1],
          [&](uint32_t one, uint32_t other) { return graph.indices[one] < graph.indices[other]; });
    }
    for (const uint32_t number : numbers) sources.push_back(graph.indices[number]);
    edges = {indptr.data(), sources.data(), numbers.data(), indptr.size() - 1};
  }

  std::vector<int64_t> indptr;
  std::vector<uint32_t> sources;
  std::vector<uint32_t> numbers;
  GnndEdges edges{};
};

// Each number is that of an edge between the two nodes; a row of a hop names none twice unless it
// must.
void CheckNumbers(const Graph& graph, const GnndBatch& batch, const std::vector<int64_t>& nodes,
                  const std::vector<int64_t>& edges, const std::vector<int64_t>& numbers) {
  const size_t count = numbers.size();
  std::map<std::array<int64_t, 3>, std::multiset<int64_t>> named;
  int64_t hop = 0;
  uint64_t hop_end = batch.hops[0].num_edges;
  for (size_t e = 0; e < count; ++e) {
    while (batch.shared == 0 && e >= hop_end) hop_end += batch.hops[++hop].num_edges;
    const auto source = static_cast<uint32_t>(nodes[edges[e]]);
    const auto target = static_cast<uint64_t>(nodes[edges[count + e]]);
    const auto number = static_cast<uint64_t>(numbers[e]);
    REQUIRE(number >= graph.indptr[target]);
    REQUIRE(number < graph.indptr[target + 1]);
    REQUIRE(graph.indices[number] == source);
    named[{hop, edges[count + e], source}].insert(numbers[e]);
  }
  for (const auto& [ends, found] : named) {
    const auto target = static_cast<uint64_t>(nodes[ends[1]]);
    const auto begin = graph.indices.begin();
    const auto alike = static_cast<size_t>(
        std::count(begin + static_cast<int64_t>(graph.indptr[target]),
                   begin + static_cast<int64_t>(graph.indptr[target + 1]), ends[2]));
    const std::set<int64_t> distinct(found.begin(), found.end());
    CHECK(distinct.size() == std::min(found.size(), alike));
  }
}

void CheckHop(TestReader& reader, uint32_t hop, const GnndHop& sizes,
              const ReferenceBlock& expected) {
  CAPTURE(hop);
  std::vector<int64_t> indptr(sizes.num_dst + 1);
  std::vector<int64_t> src(sizes.num_edges);
  std::vector<float> weights(sizes.num_edges);
  GnndHopArrays arrays{};
  arrays.indptr = indptr.data();
  arrays.src = src.data();
  arrays.weights = weights.data();
  REQUIRE(reader.CopyHop(hop, arrays) == 0);
  CHECK(std::equal(indptr.begin(), indptr.end(), expected.indptr.begin(), expected.indptr.end()));
  CHECK(std::equal(src.begin(), src.end(), expected.src.begin(), expected.src.end()));
  if (!expected.weight.empty()) CHECK(weights == expected.weight);
}

// The rows of these blocks below each other, as the whole batch has them.
struct Whole {
  Whole(const ReferenceSample& sample, bool shared) {
    const size_t first = shared ? sample.blocks.size() - 1 : 0;
    for (size_t b = first; b < sample.blocks.size(); ++b) {
      const ReferenceBlock& block = sample.blocks[b];
      for (uint32_t row = 0; row + 1 < block.indptr.size(); ++row) {
        rows.insert(rows.end(), block.indptr[row + 1] - block.indptr[row], row);
      }
      edges.insert(edges.end(), block.src.begin(), block.src.end());
      weights.insert(weights.end(), block.weight.begin(), block.weight.end());
    }
    edges.insert(edges.end(), rows.begin(), rows.end());
  }

  std::vector<int64_t> rows;
  std::vector<int64_t> edges;  // sources, then destinations
  std::vector<float> weights;
};

void CheckBatch(TestReader& reader, const Graph& graph, const SamplerOptions& options,
                const GnndBatch& batch, const Numbered* numbered) {
  const auto epoch = static_cast<uint32_t>(batch.epoch);
  const auto index = static_cast<uint32_t>(batch.index);
  const ReferenceSample expected = SampleReference(
      graph.view(), options, {kRandomSeed, epoch, index}, SeedsOfBatch(epoch, index));
  REQUIRE(batch.num_hops == expected.blocks.size());
  CHECK(batch.shared == (options.expansion == Expansion::kNew ? 1 : 0));
  const Whole whole(expected, batch.shared == 1);
  REQUIRE(batch.num_edges == whole.rows.size());
  std::vector<int64_t> nodes(batch.num_nodes);
  std::vector<int64_t> edges(2 * batch.num_edges);
  std::vector<int64_t> numbers(batch.num_edges);
  std::vector<float> weights(batch.num_edges);
  GnndArrays arrays{};
  arrays.nodes = nodes.data();
  arrays.edges = edges.data();
  arrays.weights = weights.data();
  if (numbered != nullptr) arrays.graph = &numbered->edges;
  arrays.edge_numbers = numbers.data();
  REQUIRE(reader.Copy(arrays) == 0);
  CHECK(std::equal(nodes.begin(), nodes.end(), expected.nodes.begin(), expected.nodes.end()));
  CHECK(edges == whole.edges);
  CHECK(batch.weighted == (whole.weights.empty() ? 0 : 1));
  if (batch.weighted == 1) CHECK(weights == whole.weights);
  for (uint32_t hop = 0; hop < batch.num_hops; ++hop) {
    CheckHop(reader, hop, batch.hops[hop], expected.blocks[hop]);
  }
  if (numbered != nullptr) CheckNumbers(graph, batch, nodes, edges, numbers);
}

// Rows of every width that is copied in a way of its own; byte k of node v's is v + 3k.
void CheckTables(TestReader& reader, const GnndBatch& batch) {
  for (const uint64_t bytes : {1, 2, 3, 4, 8, 24, 1030}) {
    CAPTURE(bytes);
    const auto value = [&](uint64_t node, uint64_t k) {
      return static_cast<uint8_t>(node + 3 * k);
    };
    std::vector<uint8_t> rows(kNodes * bytes);
    for (uint64_t i = 0; i < rows.size(); ++i) rows[i] = value(i / bytes, i % bytes);
    std::vector<uint8_t> out(batch.num_nodes * bytes);
    std::vector<int64_t> nodes(batch.num_nodes);
    const std::array<GnndTable, 2> tables = {GnndTable{rows.data(), kNodes, bytes, out.data()},
                                             GnndTable{rows.data(), kNodes, bytes, out.data()}};
    GnndArrays arrays{};
    arrays.tables = tables.data();
    arrays.num_tables = tables.size();
    arrays.nodes = nodes.data();
    REQUIRE(reader.Copy(arrays) == 0);
    bool is_same = true;
    for (uint64_t i = 0; i < out.size(); ++i) {
      is_same = is_same && out[i] == value(static_cast<uint64_t>(nodes[i / bytes]), i % bytes);
    }
    CHECK(is_same);
  }
}

void CheckLoans(const ReaderLibrary& library, const Graph& graph, const SamplerOptions& options) {
  const GraphLending lent(graph.view(), options);
  TestReader reader(library, lent.job.socket, 0, 1);
  REQUIRE_MESSAGE(reader.joined(), reader.why);
  const Numbered numbered(graph);
  // Walks draw nodes that need not be neighbours.
  const bool draws_edges = options.algorithm != Algorithm::kWalk;
  for (uint64_t b = 0; b < kEpochs * kBatches; ++b) {
    GnndBatch batch;
    REQUIRE(reader.Next(&batch) == GNND_READER_BATCH);
    CheckBatch(reader, graph, options, batch, draws_edges ? &numbered : nullptr);
    if (b == 0) CheckTables(reader, batch);
    reader.Return();
  }
}

}  // namespace

TEST_CASE("what a reader copies is the scalar reference's batch, by every sampler") {
  const ReaderLibrary library;
  Graph graph = RandomGraph(RandomSeed(3), kNodes, 60);
  graph.SetWeights(RandomWeights(RandomSeed(3), graph));
  struct Kind {
    Algorithm algorithm;
    EdgeWeights weights;
    bool replace;
  };
  for (const Kind& kind : {Kind{Algorithm::kUniform, EdgeWeights::kNone, false},
                           Kind{Algorithm::kUniform, EdgeWeights::kNone, true},
                           Kind{Algorithm::kWeighted, EdgeWeights::kNone, false},
                           Kind{Algorithm::kWeighted, EdgeWeights::kNone, true},
                           Kind{Algorithm::kLabor, EdgeWeights::kInverse, false},
                           Kind{Algorithm::kWalk, EdgeWeights::kVisits, false}}) {
    for (const auto& fanouts :
         std::vector<std::vector<int32_t>>{{5, 3}, {-1, 2}, {4}, {3, -1, 2}}) {
      const bool takes_all = std::find(fanouts.begin(), fanouts.end(), -1) != fanouts.end();
      if (takes_all && kind.algorithm == Algorithm::kWalk) continue;
      for (const Expansion expansion : {Expansion::kAll, Expansion::kNew}) {
        CAPTURE(static_cast<uint32_t>(kind.algorithm));
        CAPTURE(kind.replace);
        CAPTURE(fanouts);
        CAPTURE(static_cast<uint32_t>(expansion));
        SamplerOptions options;
        options.algorithm = kind.algorithm;
        options.weights = kind.weights;
        options.replace = kind.replace;
        options.fanouts = fanouts;
        options.expansion = expansion;
        CheckLoans(library, graph, options);
      }
    }
  }
}

// A reader of a graph by chance that has been lent the first batch.
struct FirstBatch {
  FirstBatch() {
    REQUIRE(reader.joined());
    REQUIRE(reader.Next(&batch) == GNND_READER_BATCH);
  }

  static SamplerOptions Options() {
    SamplerOptions options;
    options.fanouts = {4};
    return options;
  }

  const ReaderLibrary library;
  const Graph graph = RandomGraph(RandomSeed(5), kNodes, 30);
  const GraphLending lent{graph.view(), Options()};
  TestReader reader{library, lent.job.socket, 0, 1};
  GnndBatch batch;
};

TEST_CASE("nodes that a table lacks are refused") {
  FirstBatch lent;
  const std::vector<uint32_t> rows(kNodes);
  std::vector<uint32_t> out(lent.batch.num_nodes);
  std::vector<int64_t> nodes(lent.batch.num_nodes);
  GnndTable table{rows.data(), kNodes, sizeof(uint32_t), out.data()};
  GnndArrays arrays{};
  arrays.nodes = nodes.data();
  arrays.tables = &table;
  arrays.num_tables = 1;
  REQUIRE(lent.reader.Copy(arrays) == 0);
  table.num_rows = static_cast<uint64_t>(*std::max_element(nodes.begin(), nodes.end()));
  CHECK(lent.reader.Copy(arrays) != 0);
}

TEST_CASE("edges that a graph lacks have no numbers") {
  FirstBatch lent;
  const Numbered others(RandomGraph(RandomSeed(6), kNodes, 30));
  std::vector<int64_t> numbers(lent.batch.num_edges);
  GnndArrays arrays{};
  arrays.graph = &others.edges;
  arrays.edge_numbers = numbers.data();
  CHECK(lent.reader.Copy(arrays) != 0);
  GnndHopArrays hop{};
  hop.graph = &others.edges;
  hop.edge_numbers = numbers.data();
  CHECK(lent.reader.CopyHop(0, hop) != 0);
}

}  // namespace gnnd::test
