#include "core/prepare/presample.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/batch/layout.h"
#include "core/draw/philox.h"
#include "core/executor/hot_rank_marker.h"
#include "core/feature/footprint.h"
#include "core/feature/hot_order.h"
#include "core/item/item_range.h"
#include "core/prepare/cache_report.h"
#include "core/prepare/rank_nodes.h"
#include "core/sample/sampler.h"
#include "test/support/sampling.h"

namespace gnnd {
namespace {

// Uniform k-hop sampling of a graph in memory, as an executor's work.
class GraphWork final : public SampleWork {
 public:
  GraphWork(const TopologyView& topology, std::vector<uint32_t> train, uint32_t batch_size,
            SamplerOptions options, bool hot_ranks = false)
      : train_(std::move(train)), batch_size_(batch_size) {
    SampleLimits limits = LimitsOf(topology.num_nodes(), topology.num_edges(), batch_size, options);
    limits.hot_ranks = hot_ranks;
    layout_ = *RecordLayout::Of(limits);
    sampler_ = std::make_unique<Sampler>(topology, options, layout_, DetectInstructionSet());
  }

  Status Start(const SampleTask& task) override {
    std::vector<uint32_t> seeds;
    const BatchKey key{7, task.epoch, task.batch};
    SeedsOf(key, train_, batch_size_, &seeds);
    epochs.push_back(task.epoch);
    return sampler_->Sample(key, seeds, task.slot);
  }
  Status Finish(const SampleTask& task, SampleReport* report) override {
    report->payload_bytes = OwnHeader(task.slot).payload_bytes;
    report->extent_bytes = OwnHeader(task.slot).extent_bytes;
    return Status::Ok();
  }

  const RecordLayout& layout() const { return layout_; }
  uint32_t batches() const { return NumBatches(static_cast<uint32_t>(train_.size()), batch_size_); }
  std::vector<uint32_t> epochs;  // asked for

 private:
  std::vector<uint32_t> train_;
  uint32_t batch_size_;
  RecordLayout layout_;
  std::unique_ptr<Sampler> sampler_;
};

Presampler PresamplerOf(GraphWork* work, const TopologyView& topology) {
  return Presampler({work}, work->layout().slot_bytes(), topology.num_nodes(), work->batches());
}

TEST_CASE("several threads count what one counts, and each batch is sampled once") {
  const test::Graph graph = test::RandomGraph(13, 500, 25);
  const std::vector<uint32_t> train = test::RandomNodes(14, 500, 200);
  std::vector<std::unique_ptr<GraphWork>> works;
  std::vector<SampleWork*> borrowed;
  for (uint32_t i = 0; i < 3; ++i) {
    works.push_back(
        std::make_unique<GraphWork>(graph.view(), train, 8, SamplerOptions{.fanouts = {4, 4}}));
    borrowed.push_back(works.back().get());
  }
  Presampler alone = PresamplerOf(works[0].get(), graph.view());
  const Result<EpochFootprint> expected = alone.Presample(2);
  REQUIRE(expected.ok());
  works[0]->epochs.clear();
  Presampler crew(borrowed, works[0]->layout().slot_bytes(), 500, works[0]->batches());
  const Result<EpochFootprint> counted = crew.Presample(2);
  REQUIRE(counted.ok());
  CHECK(counted->counts == expected->counts);
  size_t batches = 0;
  for (const auto& work : works) batches += work->epochs.size();
  CHECK(batches == 2 * 25);
}

TEST_CASE("a node that is among the inputs of hundreds of batches is counted for each") {
  constexpr uint32_t kNodes = 701;
  test::Graph graph;  // all list node 700
  for (uint32_t v = 0; v + 1 < kNodes; ++v) graph.AddRow({kNodes - 1});
  graph.AddRow({});
  std::vector<uint32_t> train(kNodes - 1);
  std::iota(train.begin(), train.end(), 0U);
  GraphWork work(graph.view(), train, 1, {.fanouts = {1}});
  Presampler presampler = PresamplerOf(&work, graph.view());
  const Result<EpochFootprint> footprint = presampler.Presample(2);
  REQUIRE(footprint.ok());
  CHECK(footprint->counts.back() == 2 * (kNodes - 1));
}

TEST_CASE("a sampler that fails ends pre-sampling with its reason, whatever the others do") {
  class FailingWork final : public SampleWork {
   public:
    explicit FailingWork(SampleWork* inner) : inner_(inner) {}
    Status Start(const SampleTask& task) override {
      if (task.batch == 3) return Status(Code::kPluginFailed, "batch 3");
      return inner_->Start(task);
    }
    Status Finish(const SampleTask& task, SampleReport* report) override {
      return inner_->Finish(task, report);
    }

   private:
    SampleWork* inner_;
  };
  const test::Graph graph = test::RandomGraph(15, 300, 25);
  const std::vector<uint32_t> train = test::RandomNodes(16, 300, 100);
  GraphWork first(graph.view(), train, 10, {.fanouts = {4}});
  GraphWork second(graph.view(), train, 10, {.fanouts = {4}});
  FailingWork failing_first(&first);
  FailingWork failing_second(&second);
  Presampler crew({&failing_first, &failing_second}, first.layout().slot_bytes(), 300, 10);
  const Result<EpochFootprint> footprint = crew.Presample(1);
  REQUIRE(!footprint.ok());
  CHECK(footprint.status().message() == "batch 3");
}

TEST_CASE("pre-sampling counts a node once for each batch that contains it") {
  // 0 and 1 both list 2 twice and 3 once; all neighbours are taken, so every count is certain.
  test::Graph graph;
  graph.AddRow({2, 2, 3});
  graph.AddRow({2, 3, 2});
  graph.AddRow({});
  graph.AddRow({0});
  graph.AddRow({});
  GraphWork work(graph.view(), {0, 1}, 1, {.fanouts = {-1, -1}});
  Presampler presampler = PresamplerOf(&work, graph.view());
  const Result<EpochFootprint> footprint = presampler.Presample(1);
  REQUIRE(footprint.ok());
  // Batch {0} reads 0 2 3; batch {1} reads 1 2 3 0.
  CHECK(footprint->counts == std::vector<uint32_t>{2, 1, 2, 2, 0});
  CHECK(footprint->total_ns >= footprint->sample_ns);
}

TEST_CASE("pre-sampling counts the same on any number of threads") {
  const test::Graph graph = test::RandomGraph(5, 500, 20);
  const std::vector<uint32_t> train = test::RandomNodes(6, 500, 130);
  std::vector<uint32_t> alone;
  for (const size_t threads : {1U, 2U, 3U, 40U}) {
    INFO(threads, " threads");
    std::vector<std::unique_ptr<GraphWork>> works;
    std::vector<SampleWork*> samplers;
    for (size_t i = 0; i < threads; ++i) {
      works.push_back(
          std::make_unique<GraphWork>(graph.view(), train, 8, SamplerOptions{.fanouts = {4, 3}}));
      samplers.push_back(works.back().get());
    }
    Presampler presampler(samplers, works[0]->layout().slot_bytes(), 500, works[0]->batches());
    const Result<EpochFootprint> footprint = presampler.Presample(2);
    REQUIRE(footprint.ok());
    if (threads == 1) alone = footprint->counts;
    CHECK(footprint->counts == alone);
    // Every batch once, by whomever: 17 batches of each epoch.
    size_t batches = 0;
    for (const auto& work : works) batches += work->epochs.size();
    CHECK(batches == 2 * works[0]->batches());
    // A caller that looks at batches sees them in order, from one sampler.
    EpochFootprint looked{std::vector<uint32_t>(500), 0, 0};
    const size_t before = works[0]->epochs.size();
    REQUIRE(presampler.AddEpoch(3, &looked, [](std::span<const uint32_t>) { return Status::Ok(); })
                .ok());
    CHECK(works[0]->epochs.size() == before + works[0]->batches());
  }
  CHECK(PresampleThreads(64, 1000, 10) == 10);
  CHECK(PresampleThreads(64, 111'000'000, 1000) == 2);
  CHECK(PresampleThreads(64, 4'000'000'000, 1000) == 1);
  CHECK(PresampleThreads(0, 1000, 10) == 1);
}

TEST_CASE("PreSC#2 is the mean of the two reserved epochs, and none of the job's is seen") {
  const test::Graph graph = test::RandomGraph(3, 400, 20);
  GraphWork work(graph.view(), test::RandomNodes(4, 400, 90), 16, {.fanouts = {3, 3}});
  Presampler presampler = PresamplerOf(&work, graph.view());
  EpochFootprint first{std::vector<uint32_t>(400), 0, 0};
  EpochFootprint second = first;
  REQUIRE(presampler.AddEpoch(0xFFFFFE, &first).ok());
  REQUIRE(presampler.AddEpoch(0xFFFFFD, &second).ok());
  CHECK(first.counts != second.counts);
  work.epochs.clear();
  const Result<EpochFootprint> both = presampler.Presample(2);
  REQUIRE(both.ok());
  const Hotness mean = PresampledHotness(both->counts, 2);
  for (uint32_t v = 0; v < 400; ++v) {
    CHECK(mean[v] == static_cast<float>(first.counts[v] + second.counts[v]) / 2);
  }
  CHECK(std::all_of(work.epochs.begin(), work.epochs.end(),
                    [](uint32_t epoch) { return epoch >= 0xFFFFFD && epoch < kTrialEpoch; }));
}

TEST_CASE(
    "marks are the ranks of the record's nodes, and beyond the largest cache there are none") {
  const test::Graph graph = test::RandomGraph(5, 300, 12);
  auto inner = std::make_unique<GraphWork>(graph.view(), test::RandomNodes(6, 300, 64), 16,
                                           SamplerOptions{.fanouts = {4, 4}}, true);
  const RecordLayout layout = inner->layout();
  const std::vector<uint32_t> rank_of = test::RandomNodes(8, 300, 300);
  HotRankMarker work(std::move(inner), RankTable(rank_of, 50), layout.nodes().ranks_at);
  std::vector<std::byte> slot(layout.slot_bytes());
  SampleReport report;
  REQUIRE(work.Sample({0, 2, slot}, &report).ok());
  const Result<Sample> sample = OpenRecord(slot, true);
  REQUIRE_MESSAGE(sample.ok(), sample.status().message());
  REQUIRE(sample->ranks().size() == sample->nodes().size());
  CHECK(report.payload_bytes == OwnHeader(slot).payload_bytes);
  for (size_t i = 0; i < sample->nodes().size(); ++i) {
    const uint32_t rank = rank_of[sample->nodes()[i]];
    CHECK(sample->ranks()[i] == (rank < 50 ? rank : kNoRank));
  }
}

// A graph whose rows list few nodes often and most seldom.
test::Graph SkewedGraph(uint64_t seed, uint32_t num_nodes) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> unit(0, 1);
  test::Graph graph;
  for (uint32_t v = 0; v < num_nodes; ++v) {
    std::vector<uint32_t> row(1 + generator() % 12);
    for (uint32_t& u : row) {
      const double x = unit(generator);
      u = static_cast<uint32_t>(x * x * x * x * num_nodes);
    }
    graph.AddRow(row);
  }
  return graph;
}

const PolicyReport& PolicyOf(const CacheReport& report, CachePolicy policy, uint32_t epochs = 0) {
  for (const PolicyReport& found : report.policies) {
    if (found.policy == policy && found.presample_epochs == epochs) return found;
  }
  FAIL("the policy is not in the report");
  return report.policies.front();
}

TEST_CASE("on a skewed graph the oracle is best, random worst, and PreSC close to the oracle") {
  const uint64_t seed = test::RandomSeed(11);
  CAPTURE(seed);
  constexpr uint32_t kNodes = 20'000;
  const test::Graph graph = SkewedGraph(seed, kNodes);
  const std::vector<uint32_t> train = test::RandomNodes(seed + 1, kNodes, kNodes / 100);
  GraphWork work(graph.view(), train, 16, {.fanouts = {5, 5}});
  Presampler presampler = PresamplerOf(&work, graph.view());
  CacheReportRequest request;
  request.epochs = 6;
  request.presample_epochs = {1, 2};
  request.alphas = {0, 0.01, 0.1, 1};
  request.row_bytes = 40;
  request.reach = {{.fanouts = {5, 5}}, 16};
  const Result<CacheReport> report = ReportCache(request, graph.view(), train, &presampler);
  REQUIRE(report.ok());
  const auto rate = [&](CachePolicy policy, size_t cell, uint32_t epochs = 0) {
    return PolicyOf(*report, policy, epochs).cells[cell].hit_rate;
  };
  for (size_t cell = 0; cell < request.alphas.size(); ++cell) {
    const double optimal = rate(CachePolicy::kOptimal, cell);
    for (const PolicyReport& policy : report->policies) {
      CHECK(policy.cells[cell].hit_rate <= optimal);
      // Bytes moved are those that missed.
      CHECK(policy.cells[cell].bytes_moved ==
            doctest::Approx((1 - policy.cells[cell].hit_rate) * report->input_bytes));
    }
    CHECK(rate(CachePolicy::kPresc, cell, 1) >= 0.84 * optimal);
    CHECK(rate(CachePolicy::kCombined, cell, 1) >= 0.9 * optimal);
  }
  for (const size_t cell : {1, 2}) {
    CHECK(rate(CachePolicy::kPresc, cell, 1) > rate(CachePolicy::kRandom, cell));
    CHECK(rate(CachePolicy::kCombined, cell, 1) >= rate(CachePolicy::kPresc, cell, 1));
  }
  CHECK(rate(CachePolicy::kOptimal, 0) == 0);
  CHECK(rate(CachePolicy::kRandom, 3) == 1);
  CHECK(rate(CachePolicy::kRandom, 2) < 0.2);
  CHECK(report->similarity > 0.5);
  CHECK(report->similarity <= 1);
}

TEST_CASE("PreSC beats degree where degrees are flat and training nodes few") {
  constexpr uint32_t kNodes = 20'000;
  test::Graph graph;
  std::mt19937_64 generator(5);
  for (uint32_t v = 0; v < kNodes; ++v) {
    std::vector<uint32_t> row(8);
    for (uint32_t& u : row) u = static_cast<uint32_t>(generator() % kNodes);
    graph.AddRow(row);
  }
  const std::vector<uint32_t> train = test::RandomNodes(2, kNodes, 200);
  GraphWork work(graph.view(), train, 20, {.fanouts = {4, 4}});
  Presampler presampler = PresamplerOf(&work, graph.view());
  CacheReportRequest request;
  request.epochs = 3;
  request.reach = {{.fanouts = {4, 4}}, 20};
  const Result<CacheReport> report = ReportCache(request, graph.view(), train, &presampler);
  REQUIRE(report.ok());
  CHECK(PolicyOf(*report, CachePolicy::kPresc, 1).cells[0].hit_rate >
        1.5 * PolicyOf(*report, CachePolicy::kDegree).cells[0].hit_rate);
}

TEST_CASE("every policy ranks nodes as its report says") {
  const test::Graph graph = test::RandomGraph(12, 500, 15);
  const std::vector<uint32_t> train = test::RandomNodes(13, 500, 100);
  GraphWork work(graph.view(), train, 10, {.fanouts = {3, 3}});
  Presampler presampler = PresamplerOf(&work, graph.view());
  const auto ranked = [&](CachePolicy policy) {
    RankRequest request{policy, 2, 3, 9, {{.fanouts = {3, 3}}, 10}};
    Result<RankResult> result = RankNodes(request, graph.view(), train, &presampler);
    REQUIRE(result.ok());
    return result->hotness;
  };
  const Hotness presc = ranked(CachePolicy::kPresc);
  const Hotness estimate = ranked(CachePolicy::kProbability);
  CHECK(presc == PresampledHotness(presampler.Presample(2)->counts, 2));
  CHECK(estimate == ProbabilityHotness(graph.view(), train, {{.fanouts = {3, 3}}, 10}));
  CHECK(ranked(CachePolicy::kCombined) ==
        CombinedHotness(presampler.Presample(2)->counts, 2, estimate));
  CHECK(ranked(CachePolicy::kDegree) == DegreeHotness(graph.view()));
  CHECK(ranked(CachePolicy::kRandom) == RandomHotness(9, 500));
  EpochFootprint job{std::vector<uint32_t>(500), 0, 0};
  for (uint32_t epoch = 0; epoch < 3; ++epoch) REQUIRE(presampler.AddEpoch(epoch, &job).ok());
  CHECK(ranked(CachePolicy::kOptimal) == PresampledHotness(job.counts, 3));
}

TEST_CASE("an order survives its file, and a file of another graph is refused") {
  char folder[] = "/tmp/gnnd-order-XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  const std::string path = std::string(folder) + "/order.npy";
  const std::vector<uint32_t> order = test::RandomNodes(1, 100, 100);
  REQUIRE(WriteHotOrder(order, path).ok());
  const Result<HotOrder> hot = HotOrder::Open(path, 100);
  REQUIRE(hot.ok());
  for (uint32_t rank = 0; rank < 100; ++rank) {
    CHECK(hot->order()[rank] == order[rank]);
    CHECK(hot->ranks()[order[rank]] == rank);
  }
  CHECK(HotOrder::Open(path, 99).status().code() == Code::kDatasetCorrupt);
  unlink(path.c_str());
  rmdir(folder);
}

}  // namespace
}  // namespace gnnd
