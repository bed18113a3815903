#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/executor/graph_sampler.h"
#include "core/item/item_range.h"
#include "core/sample/typed.h"
#include "test/support/reference.h"
#include "test/support/typed_files.h"

namespace gnnd {
namespace {

using test::RandomTypedGraph;
using test::TempFolder;
using test::TypedFiles;

// The Sampler of a job over a dataset of several types in a folder of its own.
class Job {
 public:
  Job(const TypedFiles& files, const SamplerOptions& options, uint32_t batch_size,
      TopologyPlace place = TopologyPlace::kMemory) {
    files.WriteTo(folder_);
    Result<TypedDataset> opened = TypedDataset::Open(folder_.path(), files.schema());
    REQUIRE_MESSAGE(opened.ok(), opened.status().message());
    dataset_ = std::move(*opened);
    const Result<UniqueFd> fd = CreateTopology(dataset_, {place});
    REQUIRE_MESSAGE(fd.ok(), fd.status().message());
    Result<Topology> topology = Topology::Attach(fd->get(), dataset_);
    REQUIRE_MESSAGE(topology.ok(), topology.status().message());
    const Result<RecordLayout> layout = LayoutOf(files.schema(), batch_size, options);
    REQUIRE_MESSAGE(layout.ok(), layout.status().message());
    slot_.resize(layout->slot_bytes());
    GraphSampler::Options job;
    job.random_seed = 77;
    job.batch_size = batch_size;
    job.train_nodes.assign(dataset_.train().begin(), dataset_.train().end());
    job.sampler = options;
    Result<std::unique_ptr<SampleWork>> work =
        GraphSampler::Create(std::move(*topology), std::move(job), *layout);
    REQUIRE_MESSAGE(work.ok(), work.status().message());
    work_ = std::move(*work);
  }

  Sample Batch(uint32_t epoch, uint32_t batch, SampleReport* report) {
    REQUIRE(work_->Sample({epoch, batch, slot_}, report).ok());
    const Result<Sample> sample = OpenRecord(slot_, true);
    REQUIRE_MESSAGE(sample.ok(), sample.status().message());
    return *sample;
  }

 private:
  TempFolder folder_;
  TypedDataset dataset_;
  std::vector<std::byte> slot_;
  std::unique_ptr<SampleWork> work_;
};

std::vector<uint32_t> TrainOf(const TypedFiles& files) {
  return {files.train.begin(), files.train.end()};
}

TEST_CASE("an epoch over several types has each training node of type 0 as a seed once") {
  const TypedFiles files = TypedFiles::Of(RandomTypedGraph(6, {200, 90, 150}, 6, 8));
  constexpr uint32_t kBatch = 8;
  Job job(files, {.fanouts = {3, 2}}, kBatch);
  const auto batches = NumBatches(static_cast<uint32_t>(files.train.size()), kBatch);
  std::vector<std::vector<uint32_t>> epochs;
  for (uint32_t epoch = 0; epoch < 2; ++epoch) {
    std::vector<uint32_t>& seeds = epochs.emplace_back();
    for (uint32_t batch = 0; batch < batches; ++batch) {
      SampleReport report;
      const Sample sample = job.Batch(epoch, batch, &report);
      const auto own = sample.nodes(0).first(sample.num_seeds(0));
      seeds.insert(seeds.end(), own.begin(), own.end());
      CHECK(sample.num_seeds(1) == 0);
      CHECK(sample.num_seeds(2) == 0);
      CHECK(report.seeds == own.size());
      CHECK(report.nodes ==
            sample.nodes(0).size() + sample.nodes(1).size() + sample.nodes(2).size());
      CHECK(report.edges == sample.num_edges());
    }
    CHECK_FALSE(std::ranges::is_sorted(seeds));
  }
  CHECK(epochs[0] != epochs[1]);
  for (std::vector<uint32_t>& seeds : epochs) {
    std::ranges::sort(seeds);
    CHECK(seeds == TrainOf(files));
  }
}

TEST_CASE("a job's batch over several types is the reference's, from memory and from files") {
  const uint64_t first = test::RandomSeed(1);
  for (uint64_t seed = first; seed < first + 4; ++seed) {
    INFO("GNND_SEED=", seed);
    const TypedFiles files = TypedFiles::Of(RandomTypedGraph(seed, {120, 90, 150}, 5, 12));
    for (const TopologyPlace place : {TopologyPlace::kMemory, TopologyPlace::kFile}) {
      SamplerOptions options{.fanouts = {4, 3}};
      if (seed % 2 == 0) options.expansion = Expansion::kNew;
      if (seed % 3 == 0) options.relation_fanouts = {{4, 0}, {2, 2}, {0, 5}, {-1, 1}, {3, 3}};
      Job job(files, options, 10, place);
      SampleReport report;
      const Sample sample = job.Batch(1, 2, &report);
      const BatchKey key{77, 1, 2};
      std::vector<uint32_t> seeds;
      SeedsOf(key, TrainOf(files), 10, &seeds);
      const TypedReferenceSample expected =
          TypedReference(files.graph.view(), options, key, seeds, 0);
      for (uint32_t t = 0; t < 3; ++t) {
        CHECK(std::ranges::equal(sample.nodes(t), expected.nodes[t]));
      }
      REQUIRE(sample.num_blocks() == expected.blocks.size());
      for (uint32_t b = 0; b < sample.num_blocks(); ++b) {
        CAPTURE(b);
        CHECK(sample.block(b).relation == expected.blocks[b].relation);
        CHECK(std::ranges::equal(sample.block(b).indptr, expected.blocks[b].block.indptr));
        CHECK(std::ranges::equal(sample.block(b).src, expected.blocks[b].block.src));
      }
    }
  }
}

TEST_CASE("layouts of a schema are those of its graph") {
  const TypedFiles files = TypedFiles::Of(RandomTypedGraph(8, {120, 90, 150}, 5, 12));
  SamplerOptions options{.fanouts = {4, 3}};
  for (const bool by_relation : {false, true}) {
    if (by_relation) options.relation_fanouts = {{4, 0}, {2, 2}, {0, 5}, {-1, 1}, {3, 3}};
    const Result<RecordLayout> one = LayoutOf(files.schema(), 16, options);
    const Result<RecordLayout> other =
        RecordLayout::Of(LimitsOf(files.graph.view(), 0, 16, options));
    REQUIRE(one.ok());
    REQUIRE(other.ok());
    CHECK(one->slot_bytes() == other->slot_bytes());
    CHECK(one->num_blocks() == other->num_blocks());
  }
}

TEST_CASE("what is not sampled over several types is refused by name") {
  const TypedFiles files = TypedFiles::Of(RandomTypedGraph(5, {120, 90}, 3, 12));
  const TempFolder folder;
  files.WriteTo(folder);
  const Result<TypedDataset> dataset = TypedDataset::Open(folder.path(), files.schema());
  REQUIRE(dataset.ok());
  const Result<UniqueFd> fd = CreateTopology(*dataset);
  REQUIRE(fd.ok());
  const RecordLayout layout = *LayoutOf(files.schema(), 10, {.fanouts = {2}});
  const auto refusal = [&](const auto& change) {
    GraphSampler::Options job;
    job.batch_size = 10;
    job.sampler.fanouts = {2};
    change(&job);
    Result<Topology> topology = Topology::Attach(fd->get(), *dataset);
    REQUIRE(topology.ok());
    const Status status =
        GraphSampler::Create(std::move(*topology), std::move(job), layout).status();
    CHECK(status.code() == Code::kInvalidArgument);
    return status.message();
  };
  using Options = GraphSampler::Options;
  const auto names = [&](const auto& change, const std::string& what) {
    return refusal(change) == what + " is not for graphs of several types";
  };
  CHECK(names([](Options* o) { o->links.count = 5; }, "sampling for links"));
  CHECK(names([](Options* o) { o->sampler.algorithm = Algorithm::kWeighted; },
              "sampling by edge weight"));
  CHECK(names([](Options* o) { o->sampler.algorithm = Algorithm::kWalk; },
              "sampling by random walks"));
  CHECK(names([](Options* o) { o->sampler.algorithm = Algorithm::kPlugin; },
              "sampling by a plug-in"));
  CHECK(names([](Options* o) { o->sampler.locality.max_scale = 2; }, "sampling with locality"));
  CHECK(names([](Options* o) { o->sampler.weights = EdgeWeights::kGcn; },
              "weighing edges as GCN does"));
  CHECK(refusal([](Options* o) { o->sampler.relation_fanouts = {{2}, {2}}; }) ==
        "fanouts of relations: 2, expected 3");
  CHECK(refusal([](Options* o) { o->sampler.relation_fanouts = {{2}, {2}, {2, 2}}; }) ==
        "fanouts of relation 2: hops: 2, expected 1");
  CHECK(LayoutOf(files.schema(), 10, {.fanouts = {2}, .relation_fanouts = {{2}}}).status().code() ==
        Code::kInvalidArgument);
  CHECK(LayoutOf(files.schema(), 0, {.fanouts = {2}}).status().code() == Code::kInvalidArgument);
}

}  // namespace
}  // namespace gnnd
