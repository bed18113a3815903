// Runs the Sampler on a graph from files, controlled by a driver that lets peers sample the same
// batches of the same graph in turn (bench/peers/sampling.py).
//
//   graph_sampler_bench FOLDER [--fanouts 15,10,5] [--batch 1024] [--threads 1] [--slots 4]
//                       [--random-seed 1] [--algorithm uniform|weighted|labor|walk]
//
// FOLDER holds indptr.npy (int64), indices.npy (int32) and seeds.npy (int64, node ids in the order
// in which batches take them), for weighted sampling edge_weights.npy (float32). Walks are 8 of 3
// steps with restart 0.5; their fanouts say how many of the most visited nodes are neighbours.
// Commands: `warm FIRST COUNT` samples the batches FIRST .. into slots that were written before, as
// in the daemon; `fresh FIRST COUNT` into memory newly mapped for each batch and given back after
// it. With more threads each has batches of its own. The answer holds wall nanoseconds, edges and
// nodes of every batch, and the wall time of all of them. Within the time a batch's seeds are drawn
// from the epoch's permutation, as the Sampler does it; those sampled are the file's, which all
// contestants have.
//
// Before the clock starts, the first batch of each command is sampled once more and checked:
// every row has min(fanout, degree) in-neighbours, no edge twice; the node list repeats nothing.
// LABOR's and walks' rows have sizes of their own, walks' rows also nodes further away.

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/base/memfd.h"
#include "core/item/item_range.h"
#include "core/sample/sampler.h"
#include "file_graph.h"
#include "served_bench.h"

namespace gnnd::bench {
namespace {

struct Options {
  SamplerOptions sampler;
  uint32_t batch_size = 0;
  uint32_t slots = 0;
  uint64_t random_seed = 0;
};

// A graph with the seeds of all batches.
struct SeededGraph {
  std::vector<uint32_t> seeds;
  Graph graph;

  SeededGraph(const std::string& folder, bool weighted)
      : graph(ReadGraph(folder, weighted, &seeds)) {}

  // After the last full batch, batches start over.
  std::span<const uint32_t> SeedsOf(uint32_t batch, uint32_t size) const {
    const uint64_t batches = seeds.size() / size;
    GNND_CHECK(batches > 0);
    return std::span(seeds).subspan(batch % batches * size, size);
  }
};

// Memory for the record of one batch: mapped for it, and returned at the end.
class FreshSlot {
 public:
  explicit FreshSlot(uint64_t bytes) : bytes_(bytes) {
    memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    GNND_CHECK(memory_ != MAP_FAILED);
    static_cast<void>(madvise(memory_, bytes, MADV_HUGEPAGE));
  }
  FreshSlot(const FreshSlot&) = delete;
  FreshSlot& operator=(const FreshSlot&) = delete;
  ~FreshSlot() { munmap(memory_, bytes_); }

  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(memory_), bytes_}; }

 private:
  void* memory_;
  uint64_t bytes_;
};

struct BatchResult {
  uint64_t ns = 0;
  uint64_t cpu_ns = 0;
  uint64_t edges = 0;
  uint64_t nodes = 0;
};

// Wall and CPU time of the calling thread since the object was made.
class Stopwatch {
 public:
  void ReadInto(BatchResult* result) const {
    result->ns = MonotonicNs() - start_ns_;
    result->cpu_ns = CpuNs(CLOCK_THREAD_CPUTIME_ID) - start_cpu_ns_;
  }

 private:
  uint64_t start_cpu_ns_ = CpuNs(CLOCK_THREAD_CPUTIME_ID);
  uint64_t start_ns_ = MonotonicNs();
};

// One thread's Sampler and slots.
class Worker {
 public:
  Worker(const SeededGraph& graph, const Options& options, const RecordLayout& layout)
      : graph_(graph),
        options_(options),
        slot_bytes_(layout.slot_bytes()),
        sampler_(graph.graph.view(), options.sampler, layout, DetectInstructionSet()) {
    for (uint32_t i = 0; i < options.slots; ++i) {
      const UniqueFd fd = Must(CreateMemfd("graph-sampler-bench", slot_bytes_));
      slots_.push_back(Must(Mapping::Map(fd.get(), true)));
    }
  }

  BatchResult Warm(uint32_t batch) {
    const Mapping& slot = slots_[batch % slots_.size()];
    const Stopwatch stopwatch;
    Sample(batch, {slot.data(), slot.size()});
    BatchResult result = ResultOf(slot.bytes());
    stopwatch.ReadInto(&result);
    return result;
  }

  BatchResult Fresh(uint32_t batch) {
    BatchResult result;
    const Stopwatch stopwatch;
    {
      const FreshSlot slot(slot_bytes_);
      Sample(batch, slot.bytes());
      result = ResultOf(slot.bytes());
    }
    stopwatch.ReadInto(&result);
    return result;
  }

  void Verify(uint32_t batch) {
    const Mapping& slot = slots_[batch % slots_.size()];
    Sample(batch, {slot.data(), slot.size()});
    const gnnd::Sample sample = Must(OpenRecord(slot.bytes(), /*deep=*/true));
    for (uint32_t hop = 0; hop < sample.num_hops(); ++hop) VerifyHop(sample, hop);
  }

 private:
  void Sample(uint32_t batch, std::span<std::byte> slot) {
    const auto batches = static_cast<uint32_t>(graph_.seeds.size() / options_.batch_size);
    SeedsOf({options_.random_seed, 0, batch % batches}, graph_.seeds, options_.batch_size,
            &drawn_seeds_);
    const BatchKey key{options_.random_seed, 0, batch};
    Must(sampler_.Sample(key, graph_.SeedsOf(batch, options_.batch_size), slot));
  }

  static BatchResult ResultOf(std::span<const std::byte> slot) {
    const gnnd::Sample sample = Must(OpenRecord(slot));
    return {.edges = sample.num_edges(), .nodes = sample.nodes().size()};
  }

  // A row may list a neighbour at most as often as the graph's row does.
  void VerifyHop(const gnnd::Sample& sample, uint32_t hop) const {
    const TopologyView topology = graph_.graph.view();
    const BlockView block = sample.block(hop);
    const auto fanout = static_cast<uint64_t>(options_.sampler.fanouts[hop]);  // -1: no bound
    const Algorithm algorithm = options_.sampler.algorithm;
    std::vector<uint32_t> drawn;
    std::vector<uint32_t> row;
    for (uint32_t i = 0; i < block.num_dst; ++i) {
      const uint32_t node = sample.nodes()[i];
      const auto ids = topology.indices.subspan(topology.indptr[node], topology.degree(node));
      drawn.clear();
      for (uint32_t e = block.indptr[i]; e < block.indptr[i + 1]; ++e) {
        drawn.push_back(sample.nodes()[block.src[e]]);
      }
      std::sort(drawn.begin(), drawn.end());
      if (algorithm == Algorithm::kWalk) {
        GNND_CHECK(drawn.size() <= fanout);
        GNND_CHECK(std::adjacent_find(drawn.begin(), drawn.end()) == drawn.end());
        continue;
      }
      const bool exact = algorithm != Algorithm::kLabor;
      GNND_CHECK(!exact || drawn.size() == std::min<uint64_t>(fanout, ids.size()));
      row.assign(ids.begin(), ids.end());
      std::sort(row.begin(), row.end());
      GNND_CHECK(std::includes(row.begin(), row.end(), drawn.begin(), drawn.end()));
    }
  }

  const SeededGraph& graph_;
  const Options& options_;
  uint64_t slot_bytes_;
  Sampler sampler_;
  std::vector<uint32_t> drawn_seeds_;
  std::vector<Mapping> slots_;
};

std::string Answer(std::vector<Worker>* workers, const std::vector<std::string>& words) {
  GNND_CHECK(words.size() == 3 && (words[0] == "warm" || words[0] == "fresh"));
  const bool fresh = words[0] == "fresh";
  const auto first = static_cast<uint32_t>(std::stoul(words[1]));
  const auto count = static_cast<uint32_t>(std::stoul(words[2]));
  workers->front().Verify(first);
  std::vector<BatchResult> results(count);
  const auto work = [&](uint32_t thread) {
    Worker& worker = (*workers)[thread];
    for (uint32_t i = thread; i < count; i += static_cast<uint32_t>(workers->size())) {
      results[i] = fresh ? worker.Fresh(first + i) : worker.Warm(first + i);
    }
  };
  const uint64_t start_ns = MonotonicNs();
  std::vector<std::thread> others;
  for (uint32_t thread = 1; thread < workers->size(); ++thread) others.emplace_back(work, thread);
  work(0);
  for (std::thread& other : others) other.join();
  const uint64_t wall_ns = MonotonicNs() - start_ns;
  std::vector<uint64_t> ns;
  std::vector<uint64_t> cpu_ns;
  std::vector<uint64_t> edges;
  std::vector<uint64_t> nodes;
  for (const BatchResult& result : results) {
    ns.push_back(result.ns);
    cpu_ns.push_back(result.cpu_ns);
    edges.push_back(result.edges);
    nodes.push_back(result.nodes);
  }
  std::ostringstream answer;
  answer << "{\"wall_ns\":" << wall_ns << ',' << JsonList("ns", ns) << ','
         << JsonList("cpu_ns", cpu_ns) << ',' << JsonList("edges", edges) << ','
         << JsonList("nodes", nodes) << '}';
  return answer.str();
}

SamplerOptions SamplerOptionsOf(int argc, char** argv) {
  SamplerOptions options;
  options.fanouts = FanoutsArgument(argc, argv, "15,10,5");
  options.walk = {.walks = 8, .length = 3, .restart_prob = 0.5};
  const std::string name = Argument(argc, argv, "--algorithm", "uniform");
  if (name == "weighted") {
    options.algorithm = Algorithm::kWeighted;
  } else if (name == "labor") {
    options.algorithm = Algorithm::kLabor;
    options.weights = EdgeWeights::kInverse;
  } else if (name == "walk") {
    options.algorithm = Algorithm::kWalk;
    options.weights = EdgeWeights::kVisits;
  } else if (name != "uniform") {
    std::fprintf(stderr, "--algorithm %s: unknown\n", name.c_str());
    std::exit(64);
  }
  return options;
}

int Main(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') {
    std::fprintf(stderr, "usage: graph_sampler_bench FOLDER [OPTIONS]   (see the source's head)\n");
    return 64;
  }
  const Options options{SamplerOptionsOf(argc, argv), NumberArgument(argc, argv, "--batch", 1024),
                        NumberArgument(argc, argv, "--slots", 4),
                        NumberArgument(argc, argv, "--random-seed", 1)};
  const SeededGraph graph(argv[1], options.sampler.algorithm == Algorithm::kWeighted);
  const TopologyView topology = graph.graph.view();
  const RecordLayout layout = Must(RecordLayout::Of(
      LimitsOf(topology.num_nodes(), topology.num_edges(), options.batch_size, options.sampler)));
  std::vector<Worker> workers;
  const uint32_t threads = NumberArgument(argc, argv, "--threads", 1);
  workers.reserve(threads);
  for (uint32_t i = 0; i < threads; ++i) workers.emplace_back(graph, options, layout);
  for (Worker& worker : workers) {
    for (uint32_t slot = 0; slot < options.slots; ++slot) worker.Warm(slot);
  }
  std::ostringstream ready;
  ready << "{\"nodes\":" << topology.num_nodes() << ",\"edges\":" << topology.num_edges() << '}';
  Serve(ready.str(),
        [&](const std::vector<std::string>& words) { return Answer(&workers, words); });
  return 0;
}

}  // namespace
}  // namespace gnnd::bench

int main(int argc, char** argv) { return gnnd::bench::Main(argc, argv); }
