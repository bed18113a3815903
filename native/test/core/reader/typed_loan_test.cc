#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/cpu.h"
#include "core/sample/sampler.h"
#include "test/core/reader/lending.h"
#include "test/core/reader/reader_library.h"
#include "test/support/graphs.h"
#include "test/support/reference.h"
#include "test/support/typed_graphs.h"

// Batches of several types, as a user's process gets them: each must be the scalar reference's.

namespace gnnd::test {
namespace {

constexpr uint32_t kBatchSize = 9;
constexpr uint64_t kRandomSeed = 21;
constexpr Lending::Job kJob{3, 1, kBatchSize, 0};

std::vector<uint32_t> SeedsOfBatch(const TypedGraph& graph, uint32_t batch) {
  return RandomNodes(500 + batch, graph.num_nodes[0], kBatchSize);
}

// A Sampler over a graph that a test owns.
class TypedWork final : public SampleWork {
 public:
  TypedWork(const TypedGraph& graph, const SamplerOptions& options, const RecordLayout& layout)
      : graph_(graph), sampler_(graph.view(), options, layout, DetectInstructionSet()) {}

  Status Start(const SampleTask& task) override {
    return sampler_.Sample({kRandomSeed, task.epoch, task.batch}, SeedsOfBatch(graph_, task.batch),
                           task.slot, task.scale);
  }
  Status Finish(const SampleTask& task, SampleReport* report) override {
    const RecordHeader& header = OwnHeader(task.slot);
    report->payload_bytes = header.payload_bytes;
    report->extent_bytes = header.extent_bytes;
    return Status::Ok();
  }

 private:
  const TypedGraph& graph_;
  Sampler sampler_;
};

// The edges of a relation, numbered in the order of its sorted rows.
struct Numbered {
  explicit Numbered(const Graph& rows)
      : indptr(rows.indptr.begin(), rows.indptr.end()),
        sources(rows.indices.begin(), rows.indices.end()),
        numbers(sources.size()) {
    std::iota(numbers.begin(), numbers.end(), 0U);
  }
  GnndEdges edges() const {
    return {indptr.data(), sources.data(), numbers.data(), indptr.size() - 1};
  }

  std::vector<int64_t> indptr;
  std::vector<uint32_t> sources;
  std::vector<uint32_t> numbers;
};

// What a reader gets of a batch.
struct Copied {
  std::vector<std::vector<int64_t>> nodes;
  std::vector<std::vector<uint32_t>> rows;  // of a table that has 7 v for node v
  std::vector<std::vector<int64_t>> edges;  // [2, E] of each relation
  std::vector<std::vector<int64_t>> numbers;
};

Copied CopyOf(TestReader& reader, const TypedGraph& graph, const GnndBatch& batch) {
  std::vector<GnndType> types(batch.num_types);
  std::vector<GnndBlock> blocks(batch.num_blocks);
  REQUIRE(reader.Parts(types.data(), blocks.data()) == 0);
  Copied copied;
  std::vector<std::vector<uint32_t>> all;
  std::vector<GnndTable> tables;
  std::vector<GnndTypeArrays> of_types;
  for (size_t t = 0; t < types.size(); ++t) {
    CHECK(types[t].num_seeds == (t == 0 ? kBatchSize : 0));
    copied.nodes.emplace_back(types[t].num_nodes);
    copied.rows.emplace_back(types[t].num_nodes);
    all.emplace_back(graph.num_nodes[t]);
    for (uint32_t v = 0; v < graph.num_nodes[t]; ++v) all[t][v] = 7 * v;
    tables.push_back({all[t].data(), all[t].size(), sizeof(uint32_t), copied.rows[t].data()});
  }
  for (size_t t = 0; t < types.size(); ++t) {
    of_types.push_back({&tables[t], 1, copied.nodes[t].data()});
  }
  std::vector<Numbered> graphs;
  std::vector<uint64_t> counts(graph.relations.size());
  for (const GnndBlock& block : blocks) {
    uint64_t& count = counts[block.relation];
    count = batch.shared != 0 ? block.num_edges : count + block.num_edges;
  }
  for (const TypedGraph::Relation& relation : graph.relations) graphs.emplace_back(relation.rows);
  std::vector<GnndEdges> tables_of_edges;
  for (const Numbered& numbered : graphs) tables_of_edges.push_back(numbered.edges());
  std::vector<GnndRelationArrays> of_relations;
  for (size_t r = 0; r < counts.size(); ++r) {
    copied.edges.emplace_back(2 * counts[r]);
    copied.numbers.emplace_back(counts[r]);
    of_relations.push_back({copied.edges[r].data(), &tables_of_edges[r], copied.numbers[r].data()});
  }
  CHECK(std::reduce(counts.begin(), counts.end()) == batch.num_edges);
  REQUIRE(reader.CopyTyped(of_types.data(), of_relations) == 0);
  return copied;
}

// Edges of a relation as the reference has them, [2, E].
std::vector<int64_t> EdgesOf(const TypedReferenceSample& expected, uint32_t relation, bool shared) {
  std::vector<int64_t> sources;
  std::vector<int64_t> targets;
  for (const TypedReferenceSample::Block& of : expected.blocks) {
    if (of.relation != relation) continue;
    const ReferenceBlock& block = of.block;
    if (shared) {
      sources.clear();
      targets.clear();
    }
    for (uint32_t row = 0; row + 1 < block.indptr.size(); ++row) {
      for (uint32_t e = block.indptr[row]; e < block.indptr[row + 1]; ++e) {
        sources.push_back(block.src[e]);
        targets.push_back(row);
      }
    }
  }
  sources.insert(sources.end(), targets.begin(), targets.end());
  return sources;
}

void CheckBatch(TestReader& reader, const TypedGraph& graph, const SamplerOptions& options,
                const GnndBatch& batch) {
  const BatchKey key{kRandomSeed, 0, static_cast<uint32_t>(batch.index)};
  const TypedReferenceSample expected =
      TypedReference(graph.view(), options, key, SeedsOfBatch(graph, key.batch), 0);
  const Copied copied = CopyOf(reader, graph, batch);
  for (size_t t = 0; t < graph.num_nodes.size(); ++t) {
    CHECK(std::ranges::equal(copied.nodes[t], expected.nodes[t]));
    CHECK(std::ranges::equal(copied.rows[t], copied.nodes[t],
                             [](uint32_t row, int64_t node) { return row == 7 * node; }));
  }
  for (uint32_t r = 0; r < graph.relations.size(); ++r) {
    CAPTURE(r);
    CHECK(copied.edges[r] == EdgesOf(expected, r, batch.shared != 0));
    const TypedGraph::Relation& relation = graph.relations[r];
    const size_t count = copied.numbers[r].size();
    for (size_t e = 0; e < count; ++e) {
      const auto number = static_cast<uint64_t>(copied.numbers[r][e]);
      const int64_t source = copied.nodes[relation.src_type][copied.edges[r][e]];
      const int64_t target = copied.nodes[relation.dst_type][copied.edges[r][count + e]];
      REQUIRE(relation.rows.indices[number] == source);
      REQUIRE(relation.rows.indptr[target] <= number);
      REQUIRE(number < relation.rows.indptr[target + 1]);
    }
  }
}

}  // namespace

TEST_CASE("what a reader copies of several types is the scalar reference's batch") {
  const ReaderLibrary library;
  const uint64_t first = RandomSeed(2);
  for (uint64_t seed = first; seed < first + 3; ++seed) {
    INFO("GNND_SEED=", seed);
    const TypedGraph graph = RandomTypedGraph(seed, {60, 40, 80}, 5, 9);
    for (const Expansion expansion : {Expansion::kAll, Expansion::kNew}) {
      SamplerOptions options{.fanouts = {3, 2}};
      options.expansion = expansion;
      if (seed % 2 == 0) options.relation_fanouts = {{4, 0}, {2, 2}, {0, 5}, {-1, 1}, {3, 3}};
      const RecordLayout layout = *RecordLayout::Of(LimitsOf(graph.view(), 0, kBatchSize, options));
      const Lending job(kJob, std::make_unique<TypedWork>(graph, options, layout), layout);
      TestReader reader(library, job.socket, 0, 1);
      REQUIRE_MESSAGE(reader.joined(), reader.why);
      for (uint64_t b = 0; b < kJob.batches; ++b) {
        GnndBatch batch;
        REQUIRE(reader.Next(&batch) == GNND_READER_BATCH);
        CheckBatch(reader, graph, options, batch);
        // What is for one type, and fewer relations than there are, are refused.
        CHECK(reader.Copy(GnndArrays{}) != 0);
        CHECK(reader.CopyHop(0, GnndHopArrays{}) != 0);
        const std::vector<GnndTypeArrays> none(batch.num_types);
        CHECK(reader.CopyTyped(none.data(), {}) != 0);
        reader.Return();
      }
    }
  }
}

}  // namespace gnnd::test
