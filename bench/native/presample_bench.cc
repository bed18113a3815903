// Compares pre-sampling for PRESC#1 with an epoch of sampling: everything from the first batch to
// the order of all nodes, against the median of three warm epochs of one Sampler.
//
//   presample_bench FOLDER|NODES:EDGES [--algorithm uniform|weighted|labor|walk]
//                   [--fanouts 15,10,5] [--batch 1024] [--rounds 5]
//
// FOLDER is one of bench/peers/graphs.py; NODES:EDGES makes a power-law graph, of whose nodes each
// tenth is a training node. Weighted sampling of a made graph has weights of 1 to 10. Every round
// has new samplers, whose memory nobody touched. One JSON object a line on stdout, a table on
// stderr.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/feature/hot_order.h"
#include "core/feature/hotness.h"
#include "core/item/item_range.h"
#include "core/prepare/presample.h"
#include "core/sample/sampler.h"
#include "file_graph.h"
#include "power_law_graph.h"
#include "served_bench.h"

namespace gnnd::bench {
namespace {

struct Job {
  Graph graph;
  std::vector<uint32_t> train;
  SamplerOptions sampler;
  uint32_t batch_size = 0;

  TopologyView topology() const { return graph.view(); }
  uint32_t batches() const { return NumBatches(static_cast<uint32_t>(train.size()), batch_size); }
  RecordLayout layout() const {
    return Must(RecordLayout::Of(
        LimitsOf(topology().num_nodes(), topology().num_edges(), batch_size, sampler)));
  }
};

class JobWork final : public SampleWork {
 public:
  explicit JobWork(const Job& job)
      : job_(job), sampler_(job.topology(), job.sampler, job.layout(), DetectInstructionSet()) {}

  Status Start(const SampleTask& task) override {
    const BatchKey key{1, task.epoch, task.batch};
    SeedsOf(key, job_.train, job_.batch_size, &seeds_);
    return sampler_.Sample(key, seeds_, task.slot);
  }
  Status Finish(const SampleTask&, SampleReport*) override { return Status::Ok(); }

 private:
  const Job& job_;
  Sampler sampler_;
  std::vector<uint32_t> seeds_;
};

Job JobOf(int argc, char** argv) {
  Job job;
  const std::string algorithm = Argument(argc, argv, "--algorithm", "uniform");
  job.sampler.fanouts = FanoutsArgument(argc, argv, "15,10,5");
  job.sampler.walk = {.walks = 8, .length = 3, .restart_prob = 0.5};
  const bool weighted = algorithm == "weighted";
  if (weighted) job.sampler.algorithm = Algorithm::kWeighted;
  if (algorithm == "labor") {
    job.sampler.algorithm = Algorithm::kLabor;
    job.sampler.weights = EdgeWeights::kInverse;
  }
  if (algorithm == "walk") {
    job.sampler.algorithm = Algorithm::kWalk;
    job.sampler.weights = EdgeWeights::kVisits;
  }
  job.batch_size = NumberArgument(argc, argv, "--batch", 1024);
  const std::string source = argv[1];
  const size_t colon = source.find(':');
  if (colon == std::string::npos) {
    job.graph = ReadGraph(source, weighted, &job.train);
    return job;
  }
  const auto nodes = static_cast<uint32_t>(std::stoul(source));
  job.graph = PowerLawGraph(nodes, std::stoull(source.substr(colon + 1)));
  if (weighted) AddAliasTables(&job.graph);
  for (uint32_t v = 0; v < nodes; v += 10) job.train.push_back(v);
  return job;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// Milliseconds of wall and processor time for an epoch of one Sampler into one warm slot.
struct Epoch {
  double ms;
  double cpu_ms;
};
Epoch SampleEpoch(JobWork* work, const Job& job, std::span<std::byte> slot, uint32_t epoch) {
  const uint64_t start_cpu_ns = CpuNs(CLOCK_PROCESS_CPUTIME_ID);
  const uint64_t start_ns = MonotonicNs();
  for (uint32_t batch = 0; batch < job.batches(); ++batch) {
    SampleReport report;
    Must(work->Sample({epoch, batch, slot}, &report));
  }
  return {static_cast<double>(MonotonicNs() - start_ns) * 1e-6,
          static_cast<double>(CpuNs(CLOCK_PROCESS_CPUTIME_ID) - start_cpu_ns) * 1e-6};
}

struct Presampled {
  double count_ms;  // sampling and counting
  double all_ms;    // with hotness and order
  double cpu_ms;    // processor time of sampling and counting
};

Presampled PresampleMs(const Job& job, uint32_t threads) {
  std::vector<std::unique_ptr<JobWork>> works;
  std::vector<SampleWork*> borrowed;
  for (uint32_t i = 0; i < threads; ++i) {
    works.push_back(std::make_unique<JobWork>(job));
    borrowed.push_back(works.back().get());
  }
  const uint32_t num_nodes = job.topology().num_nodes();
  const uint64_t start_cpu_ns = CpuNs(CLOCK_PROCESS_CPUTIME_ID);
  const uint64_t start_ns = MonotonicNs();
  Presampler presampler(borrowed, job.layout().slot_bytes(), num_nodes, job.batches());
  const EpochFootprint footprint = Must(presampler.Presample(1));
  const uint64_t counted_ns = MonotonicNs();
  const uint64_t cpu_ns = CpuNs(CLOCK_PROCESS_CPUTIME_ID) - start_cpu_ns;
  GNND_CHECK(OrderByHotness(PresampledHotness(footprint.counts, 1)).size() == num_nodes);
  return {static_cast<double>(counted_ns - start_ns) * 1e-6,
          static_cast<double>(MonotonicNs() - start_ns) * 1e-6, static_cast<double>(cpu_ns) * 1e-6};
}

int Main(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') {
    std::fprintf(stderr,
                 "usage: presample_bench FOLDER|NODES:EDGES [OPTIONS]   (see the source)\n");
    return 64;
  }
  const Job job = JobOf(argc, argv);
  const uint32_t rounds = NumberArgument(argc, argv, "--rounds", 5);
  const uint32_t cores = std::max(std::thread::hardware_concurrency(), 1U);
  const uint32_t most = PresampleThreads(cores, job.topology().num_nodes(), job.batches());
  HugeArray<std::byte> slot(job.layout().slot_bytes());
  JobWork work(job);
  SampleEpoch(&work, job, {slot.data(), slot.size()}, 0);
  std::vector<double> epoch_ms;
  std::vector<double> epoch_cpu_ms;
  std::vector<double> cpu_ms[2];
  std::vector<double> count_ms[2];
  std::vector<double> all_ms[2];
  for (uint32_t round = 0; round < rounds; ++round) {
    const Epoch sampled = SampleEpoch(&work, job, {slot.data(), slot.size()}, 1 + round);
    epoch_ms.push_back(sampled.ms);
    epoch_cpu_ms.push_back(sampled.cpu_ms);
    for (const uint32_t threads : {1U, most}) {
      const Presampled took = PresampleMs(job, threads);
      count_ms[threads > 1 ? 1 : 0].push_back(took.count_ms);
      all_ms[threads > 1 ? 1 : 0].push_back(took.all_ms);
      cpu_ms[threads > 1 ? 1 : 0].push_back(took.cpu_ms);
    }
  }
  const double epoch = Median(epoch_ms);
  std::fprintf(stderr, "%u batches; an epoch of one Sampler: %.1f ms\n", job.batches(), epoch);
  for (uint32_t i = 0; i < (most > 1 ? 2U : 1U); ++i) {
    const double counted = Median(count_ms[i]);
    const double all = Median(all_ms[i]);
    const double cpu = Median(cpu_ms[i]) / Median(epoch_cpu_ms);
    std::fprintf(
        stderr,
        "%u thread(s): sampled and counted %.2f epochs (by processors' time %.2f), ordered %.2f\n",
        i == 0 ? 1 : most, counted / epoch, cpu, all / epoch);
    std::printf(
        "{\"bench\":\"presample\",\"threads\":%u,\"epoch_ms\":%.2f,\"counted_epochs\":%.3f,"
        "\"counted_cpu_epochs\":%.3f,\"ordered_epochs\":%.3f}\n",
        i == 0 ? 1 : most, epoch, counted / epoch, cpu, all / epoch);
  }
  return 0;
}

}  // namespace
}  // namespace gnnd::bench

int main(int argc, char** argv) { return gnnd::bench::Main(argc, argv); }
