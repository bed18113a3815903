// Measures a Trainer's loop with and without prefetching, on one core and on all, with features in
// memory and on disk.
//
//   prefetch_bench [--nodes 1000000] [--degree 15] [--dim 128] [--hidden 256] [--batch 1024]
//                  [--fanouts 10,10] [--batches 24] [--rounds 5] [--folder /tmp]
//
// The real thing in one process: a segment, a Sampler that fills its queue first, then a Trainer
// with the loop, the model and the optimizer of the product. GraphSAGE on a power-law graph; a
// Trainer has as many threads as cores. FOLDER receives a feature file of nodes * dim floats and
// loses it again; before each turn on disk its pages leave the page cache. Should FOLDER be memory,
// disk is no disk. The ways of a row take turns, in an order that rotates; the first round is not
// counted, medians of the others are. Both ways must end with the same parameters.
//
// ms/batch is wall time, CPU ms that of all cores; E and T are means of the stages; hidden is the
// share of E that training did not wait for. A table for people, then one line of JSON per row.

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/base/memfd.h"
#include "core/executor/sampler_loop.h"
#include "core/executor/trainer_loop.h"
#include "core/sample/sampler.h"
#include "power_law_graph.h"
#include "served_bench.h"
#include "train/work/torch_work.h"

namespace gnnd::bench {
namespace {

constexpr uint32_t kClasses = 16;

struct Options {
  uint32_t nodes = 0;
  uint32_t degree = 0;
  uint32_t dim = 0;
  uint32_t hidden = 0;
  uint32_t batch_size = 0;
  uint32_t batches = 0;
  uint32_t rounds = 0;
  SamplerOptions sampling;
  std::string folder;

  uint64_t feature_bytes() const { return uint64_t{nodes} * dim * sizeof(float); }
};

// Features in a file that lives as long as the object.
class FeatureFile {
 public:
  explicit FeatureFile(const Options& options) : options_(options) {
    std::string path = options.folder + "/gnnd-prefetch-bench-XXXXXX";
    fd_ = UniqueFd(mkstemp(path.data()));
    if (fd_.get() < 0) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(), std::strerror(errno));
      std::exit(1);
    }
    unlink(path.c_str());
    Random random;
    std::vector<float> row(options.dim);
    std::vector<char> buffer;
    const uint64_t row_bytes = row.size() * sizeof(float);
    for (uint32_t v = 0; v < options.nodes; ++v) {
      for (float& x : row) x = static_cast<float>(random.Unit()) - 0.5F;
      const auto* bytes = reinterpret_cast<const char*>(row.data());
      buffer.insert(buffer.end(), bytes, bytes + row_bytes);
      if (buffer.size() < (1U << 20) && v + 1 < options.nodes) continue;
      if (write(fd_.get(), buffer.data(), buffer.size()) != static_cast<ssize_t>(buffer.size())) {
        std::fprintf(stderr, "%s: no room for the features\n", options.folder.c_str());
        std::exit(1);
      }
      buffer.clear();
    }
    GNND_CHECK(fsync(fd_.get()) == 0);
  }

  // A new mapping, with none of its pages in memory or all of them.
  Mapping Map(bool cold) const {
    if (cold) GNND_CHECK(posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED) == 0);
    Mapping mapping = Must(Mapping::Map(fd_.get(), false));
    if (!cold) {
      const volatile std::byte* bytes = mapping.data();
      for (uint64_t at = 0; at < mapping.size(); at += kPageBytes) static_cast<void>(bytes[at]);
    }
    return mapping;
  }

 private:
  const Options& options_;
  UniqueFd fd_;
};

class GraphWork final : public SampleWork {
 public:
  GraphWork(const Options& options, const Graph& graph, const RecordLayout& layout)
      : sampler_(graph.view(), options.sampling, layout, DetectInstructionSet()),
        seeds_(options.batch_size),
        nodes_(options.nodes) {}

  Status Start(const SampleTask& task) override {
    // A prime stride visits every node once before it repeats any.
    for (uint64_t i = 0; i < seeds_.size(); ++i) {
      seeds_[i] = static_cast<uint32_t>((task.batch * seeds_.size() + i) * 2654435761 % nodes_);
    }
    return sampler_.Sample({1, task.epoch, task.batch}, seeds_, task.slot);
  }
  Status Finish(const SampleTask& task, SampleReport* report) override {
    const gnnd::Sample sample = Must(OpenRecord(task.slot));
    report->payload_bytes = OwnHeader(task.slot).payload_bytes;
    report->extent_bytes = task.slot.size();
    report->nodes = sample.nodes().size();
    report->edges = sample.num_edges();
    report->seeds = seeds_.size();
    return Status::Ok();
  }

 private:
  Sampler sampler_;
  std::vector<uint32_t> seeds_;
  uint64_t nodes_;
};

struct Turn {
  double batch_ms = 0;
  double cpu_ms = 0;
  double extract_ms = 0;
  double train_ms = 0;
  double hidden = 0;
  std::vector<float> parameters;
};

// One configuration: number of cores, place of features, prefetching or not.
struct Way {
  uint32_t cores = 0;
  bool on_disk = false;
  bool prefetch = false;
};

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        graph_(PowerLawGraph(options.nodes, uint64_t{options.nodes} * options.degree)),
        features_(options),
        labels_(options.nodes),
        layout_(Must(RecordLayout::Of(LimitsOf(options.nodes, graph_.indices.size(),
                                               options.batch_size, options.sampling)))) {
    for (uint32_t v = 0; v < options.nodes; ++v) labels_[v] = static_cast<int32_t>(v % kClasses);
    CPU_ZERO(&allowed_);
    GNND_CHECK(sched_getaffinity(0, sizeof allowed_, &allowed_) == 0);
  }

  uint32_t cores() const { return static_cast<uint32_t>(CPU_COUNT(&allowed_)); }

  Turn Run(const Way& way) {
    const Mapping mapped = features_.Map(way.on_disk);
    const auto work = Must(TorchWork::Create(TrainOptionsOf(mapped, way)));
    Segment segment = MakeSegment(*work);
    const ExecutorId sampler = Must(segment.RegisterExecutor(Role::kSampler, 0));
    const ExecutorId trainer = Must(segment.RegisterExecutor(Role::kTrainer, 1));
    std::thread samples([&] {
      GraphWork sampling(options_, graph_, layout_);
      Must(RunSamplerLoop(segment, sampler, sampling));
    });
    while (segment.Snapshot().queue_depth < options_.batches) usleep(1000);
    uint64_t wall_ns = 0;
    uint64_t cpu_ns = 0;
    // A thread of its own, so that the team's and the loop's threads inherit its cores.
    std::thread trains([&] {
      PinTo(way.cores);
      const uint64_t start_ns = MonotonicNs();
      const uint64_t start_cpu_ns = CpuNs(CLOCK_PROCESS_CPUTIME_ID);
      Must(RunTrainerLoop(segment, trainer, *work, way.prefetch));
      wall_ns = MonotonicNs() - start_ns;
      cpu_ns = CpuNs(CLOCK_PROCESS_CPUTIME_ID) - start_cpu_ns;
    });
    trains.join();
    samples.join();
    return TurnOf(segment, segment.Snapshot().executors[trainer.row], wall_ns, cpu_ns);
  }

 private:
  TrainOptions TrainOptionsOf(const Mapping& mapped, const Way& way) const {
    TrainOptions train;
    train.model.num_layers = static_cast<uint32_t>(options_.sampling.fanouts.size());
    train.model.in_dim = options_.dim;
    train.model.hidden_dim = options_.hidden;
    train.model.out_dim = kClasses;
    train.random_seed = 1;
    train.threads = way.cores;
    const std::span floats(reinterpret_cast<const float*>(mapped.data()),
                           uint64_t{options_.nodes} * options_.dim);
    train.features = RowTable(floats, options_.dim);
    train.features_on_disk = way.on_disk;
    train.targets.labels = labels_;
    train.topology = graph_.view();
    return train;
  }

  Segment MakeSegment(const TorchWork& work) const {
    SegmentSpec spec;
    spec.batches_per_epoch = options_.batches;
    spec.epochs = 1;
    spec.num_slots = options_.batches;
    spec.slot_bytes = layout_.slot_bytes();
    spec.queue_max_bytes = uint64_t{1} << 40;
    spec.parameter_floats = work.manifest().num_floats;
    spec.optimizer_floats = work.optimizer_floats();
    spec.num_devices = 2;
    spec.max_executors = 2;
    spec.batch_size = options_.batch_size;
    spec.train_nodes = uint64_t{options_.batches} * options_.batch_size;
    const UniqueFd fd = Must(Segment::Create(spec));
    return Must(Segment::Attach(fd.get(), Access::kReadWrite));
  }

  void PinTo(uint32_t count) const {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    for (uint32_t core = 0; core < CPU_SETSIZE && count > 0; ++core) {
      if (!CPU_ISSET(core, &allowed_)) continue;
      CPU_SET(core, &cores);
      --count;
    }
    GNND_CHECK(sched_setaffinity(0, sizeof cores, &cores) == 0);
  }

  Turn TurnOf(const Segment& segment, const ExecutorSnapshot& trainer, uint64_t wall_ns,
              uint64_t cpu_ns) const {
    const auto per_batch_ms = [&](uint64_t ns) {
      return static_cast<double>(ns) / 1e6 / static_cast<double>(options_.batches);
    };
    const uint64_t extract_ns = trainer.stages[static_cast<uint32_t>(Stage::kExtract)].busy_ns;
    const uint64_t waited_ns = trainer.waits[static_cast<uint32_t>(WaitSide::kExtract)].wait_ns;
    Turn turn;
    turn.batch_ms = per_batch_ms(wall_ns);
    turn.cpu_ms = per_batch_ms(cpu_ns);
    turn.extract_ms = per_batch_ms(extract_ns);
    turn.train_ms = per_batch_ms(trainer.stages[static_cast<uint32_t>(Stage::kTrain)].busy_ns);
    turn.hidden =
        std::max(0.0, 1 - static_cast<double>(waited_ns) / static_cast<double>(extract_ns));
    turn.parameters.resize(segment.parameter_floats());
    Must(segment.CopyLastParameters(turn.parameters));
    return turn;
  }

  const Options& options_;
  Graph graph_;
  FeatureFile features_;
  std::vector<int32_t> labels_;
  RecordLayout layout_;
  cpu_set_t allowed_;
};

double MedianOf(const std::vector<Turn>& turns, double Turn::* member) {
  std::vector<double> values;
  for (const Turn& turn : turns) values.push_back(turn.*member);
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Prints a line of the table; returns it as JSON.
std::string Print(const Way& way, const std::vector<Turn>& turns, double off_ms) {
  const double batch_ms = MedianOf(turns, &Turn::batch_ms);
  const double cpu_ms = MedianOf(turns, &Turn::cpu_ms);
  const double extract_ms = MedianOf(turns, &Turn::extract_ms);
  const double train_ms = MedianOf(turns, &Turn::train_ms);
  const double hidden = MedianOf(turns, &Turn::hidden);
  const char* where = way.on_disk ? "disk" : "memory";
  std::printf("%5u  %-8s  %-8s  %8.2f  %8.2f  %8.2f  %8.2f  %6.0f %%  %6.2f\n", way.cores, where,
              way.prefetch ? "on" : "off", batch_ms, cpu_ms, extract_ms, train_ms, 100 * hidden,
              off_ms / batch_ms);
  std::fflush(stdout);
  char line[400];
  std::snprintf(line, sizeof line,
                "{\"bench\":\"prefetch\",\"cores\":%u,\"features\":\"%s\",\"prefetch\":%s,"
                "\"batch_ms\":%.3f,\"cpu_ms\":%.3f,\"extract_ms\":%.3f,\"train_ms\":%.3f,"
                "\"hidden\":%.3f,\"turns\":%zu}\n",
                way.cores, where, way.prefetch ? "true" : "false", batch_ms, cpu_ms, extract_ms,
                train_ms, hidden, turns.size());
  return line;
}

// Runs the two ways of a row in turns; returns their lines of JSON.
std::string Compare(Bench& bench, uint32_t cores, bool on_disk, uint32_t rounds) {
  std::vector<Turn> turns[2];
  for (uint32_t round = 0; round <= rounds; ++round) {
    for (uint32_t i = 0; i < 2; ++i) {
      const bool prefetch = (round + i) % 2 == 1;
      Turn turn = bench.Run({cores, on_disk, prefetch});
      if (round > 0) turns[prefetch ? 1 : 0].push_back(std::move(turn));
    }
  }
  GNND_CHECK(turns[0].front().parameters == turns[1].front().parameters);
  const double off_ms = MedianOf(turns[0], &Turn::batch_ms);
  std::string lines;
  for (const bool prefetch : {false, true}) {
    lines += Print({cores, on_disk, prefetch}, turns[prefetch ? 1 : 0], off_ms);
  }
  return lines;
}

int Main(int argc, char** argv) {
  Options options;
  options.nodes = NumberArgument(argc, argv, "--nodes", 1'000'000);
  options.degree = NumberArgument(argc, argv, "--degree", 15);
  options.dim = NumberArgument(argc, argv, "--dim", 128);
  options.hidden = NumberArgument(argc, argv, "--hidden", 256);
  options.batch_size = NumberArgument(argc, argv, "--batch", 1024);
  options.sampling.fanouts = FanoutsArgument(argc, argv, "10,10");
  options.batches = NumberArgument(argc, argv, "--batches", 24);
  options.rounds = NumberArgument(argc, argv, "--rounds", 5);
  options.folder = Argument(argc, argv, "--folder", "/tmp");
  if (uint64_t{options.batches} * options.batch_size > options.nodes) {
    std::fprintf(stderr, "--nodes %u: fewer than the seeds of all batches\n", options.nodes);
    return 64;
  }
  Bench bench(options);
  std::printf("feature file: %.2f GiB\n",
              static_cast<double>(options.feature_bytes()) / (uint64_t{1} << 30));
  std::printf("%5s  %-8s  %-8s  %8s  %8s  %8s  %8s  %8s  %6s\n", "cores", "features", "prefetch",
              "ms/batch", "CPU ms", "E ms", "T ms", "hidden", "x off");
  std::vector<uint32_t> cores = {1};
  if (bench.cores() > 1) cores.push_back(bench.cores());
  std::string lines;
  for (const uint32_t count : cores) {
    for (const bool on_disk : {false, true}) {
      lines += Compare(bench, count, on_disk, options.rounds);
    }
  }
  std::printf("%s", lines.c_str());
  return 0;
}

}  // namespace
}  // namespace gnnd::bench

int main(int argc, char** argv) { return gnnd::bench::Main(argc, argv); }
