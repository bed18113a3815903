// Measures loading of propagated rows: an epoch by the loader's steps, and assembly beside the
// memory's own speed.
//
//   rows_bench make FOLDER ROWS COLUMNS HOPS     random rows, their nodes and labels, all training
//   rows_bench epoch FOLDER ROWS COLUMNS HOPS [--model sgc|sign] [--batch 1024] [--threads 1]
//                    [--rounds 3] [--ways assembly,copying]   (all)
//
// `epoch` trains whole epochs with the product's own extraction, model (SIGN of one layer, or SGC)
// and optimizer, in one process, by each of the ladder's steps in turns:
//
//   assembly    single rows, gathered, then computed
//   prefetch    the next batch is gathered by a second thread meanwhile
//   chunks      rows stay together by 256 KiB in each file, and are prefetched if a core is free
//   disk        the same, read past the page cache
//
// Then assembly alone, on one thread, without what is computed: "gather" is the extraction of
// batches of single rows with their order and labels, "copying" its copying alone, "copy" a memcpy
// row by row, "probe" reads the same lines in the same order and writes nothing: the floor. Files
// are written as a propagation's are, and mapped as a job's. The first round is not counted;
// medians of the others, as lines of JSON.
#include <omp.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <semaphore>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/atomic_file.h"
#include "core/base/check.h"
#include "core/base/prefetch.h"
#include "core/draw/permutation.h"
#include "core/executor/train_work.h"
#include "core/graph/features.h"
#include "core/graph/npy.h"
#include "core/prepare/propagation.h"
#include "core/prepare/row_files.h"
#include "train/bench_util.h"
#include "train/work/torch_work.h"

namespace gnnd::bench {
namespace {

constexpr uint32_t kClasses = 47;
constexpr uint64_t kSeed = 1;

struct Options {
  std::string folder;
  uint32_t rows = 0;
  uint32_t columns = 0;
  uint32_t hops = 0;
  bool is_sgc = false;
  uint32_t batch = 1024;
  uint32_t threads = 1;
  uint32_t rounds = 3;
  std::string ways;

  // Commas around both, so that no name matches a part of another.
  bool Has(const std::string& way) const {
    return ways.empty() || ("," + ways + ",").find("," + way + ",") != std::string::npos;
  }
  uint32_t tokens() const { return is_sgc ? 1 : hops + 1; }
  uint32_t batches() const { return (rows + batch - 1) / batch; }
  uint64_t epoch_bytes() const { return uint64_t{rows} * tokens() * columns * sizeof(float); }
};

template <typename T>
void WriteArray(const std::string& path, NpyType type, std::vector<uint64_t> shape,
                const std::vector<T>& values) {
  AtomicFile file(path);
  GNND_CHECK(file.Create().ok());
  const std::string header = NpyHeader(type, shape, shape.size() == 2 ? kRowAlignment : 64);
  GNND_CHECK(file.Write(std::as_bytes(std::span(header.data(), header.size()))).ok());
  GNND_CHECK(file.Write(std::as_bytes(std::span(values))).ok());
  GNND_CHECK(file.Commit().ok());
}

int Make(const Options& options) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(uint64_t{options.rows} * options.columns);
  for (float& value : values) value = uniform(random);
  for (uint32_t hop = 0; hop <= options.hops; ++hop) {
    WriteArray(options.folder + "/" + RowFile(0, hop), NpyType::kFloat32,
               {options.rows, options.columns}, values);
  }
  std::vector<uint32_t> nodes(options.rows);
  std::vector<int32_t> labels(options.rows);
  for (uint32_t i = 0; i < options.rows; ++i) {
    nodes[i] = i;
    labels[i] = static_cast<int32_t>(random() % kClasses);
  }
  WriteArray(options.folder + "/" + kNodesFile, NpyType::kUint32, {options.rows}, nodes);
  WriteArray(options.folder + "/" + kLabelsFile, NpyType::kInt32, {options.rows}, labels);
  return 0;
}

// A Trainer's state as the segment holds it.
class Trainer {
 public:
  Trainer(const Options& options, uint32_t chunk, RowTier tier) : options_(options) {
    RowsOptions rows;
    rows.model.type = options.is_sgc ? ModelType::kSgc : ModelType::kSign;
    rows.model.variant = options.is_sgc ? ModelVariant::kNone : ModelVariant::kFused;
    rows.model.num_hops = options.hops;
    rows.model.num_operators = 1;
    rows.model.num_layers = 1;
    rows.model.in_dim = options.columns;
    rows.model.out_dim = kClasses;
    rows.random_seed = kSeed;
    rows.threads = options.threads;
    rows.folder = options.folder;
    rows.train = options.rows;
    rows.batch_size = options.batch;
    rows.chunk = chunk;
    rows.tier = tier;
    auto work = TorchWork::Create(rows);
    if (!work.ok()) {
      std::fprintf(stderr, "%s\n", work.status().message().c_str());
      std::exit(1);
    }
    work_ = std::move(*work);
    for (std::vector<float>& each : parameters_) each.resize(work_->manifest().num_floats);
    for (std::vector<float>& each : optimizer_) each.resize(work_->optimizer_floats());
    gradient_.resize(work_->manifest().num_floats);
    work_->InitParameters(parameters_[0]);
  }

  // Milliseconds of one epoch.
  double Epoch(bool ahead) {
    const double start = Milliseconds();
    Read(0);
    std::binary_semaphore wanted(0);
    std::binary_semaphore there(0);
    std::jthread reader;  // one for all: libgomp keeps a team for each thread that starts one
    if (ahead) {
      reader = std::jthread([&] {
        for (uint32_t batch = 1; batch < options_.batches(); ++batch) {
          wanted.acquire();
          Read(batch);
          there.release();
        }
      });
    }
    for (uint32_t batch = 0; batch < options_.batches(); ++batch) {
      const bool has_next = batch + 1 < options_.batches();
      if (has_next && ahead) wanted.release();
      Compute(batch);
      if (has_next && ahead) there.acquire();
      if (has_next && !ahead) Read(batch + 1);
    }
    if (reader.joinable()) reader.join();
    ++epoch_;
    return Milliseconds() - start;
  }

  double Assemble() {
    const double start = Milliseconds();
    for (uint32_t batch = 0; batch < options_.batches(); ++batch) Read(batch);
    ++epoch_;
    return Milliseconds() - start;
  }

 private:
  Sample SampleOf(uint32_t batch) const {
    Sample sample(SampleKind::kRows, {0, epoch_, batch});
    const uint32_t begin = batch * options_.batch;
    sample.AddNodes({}, std::min(options_.batch, options_.rows - begin), {});
    return sample;
  }

  void Read(uint32_t batch) {
    ExtractReport report;
    const Status read = work_->Extract(SampleOf(batch), batch % kExtractBuffers, &report);
    GNND_CHECK(read.ok());
  }

  void Compute(uint32_t batch) {
    const Sample sample = SampleOf(batch);
    const size_t from = version_ % 2;
    BatchReport report;
    const Status computed = work_->ComputeGradient(
        sample, batch % kExtractBuffers, {version_, 0, parameters_[from]}, gradient_, &report);
    GNND_CHECK(computed.ok());
    const GradientView gradients[] = {{version_, true, gradient_}};
    work_->Apply({version_, report.sums.items, gradients, parameters_[from], optimizer_[from],
                  parameters_[1 - from], optimizer_[1 - from]});
    ++version_;
  }

  const Options options_;
  std::unique_ptr<TorchWork> work_;
  std::vector<float> parameters_[2];
  std::vector<float> optimizer_[2];
  std::vector<float> gradient_;
  uint64_t version_ = 0;
  uint32_t epoch_ = 0;
};

uint32_t ChunkOf(const Options& options) {
  const uint32_t wanted = (uint32_t{256} << 10) / (options.columns * 4);
  for (uint32_t chunk = std::max(1U, wanted); chunk < options.batch; ++chunk) {
    if (options.batch % chunk == 0) return chunk;
  }
  return options.batch;
}

// The memory's speed for the same rows in the same order.
class Floor {
 public:
  explicit Floor(const Options& options) : options_(options) {
    for (uint32_t hop = options.is_sgc ? options.hops : 0; hop <= options.hops; ++hop) {
      auto file = NpyArray::Open(options.folder + "/" + RowFile(0, hop));
      GNND_CHECK(file.ok());
      files_.push_back(std::move(*file));
    }
    for (uint32_t i = 0; i < options.rows; ++i) {
      rows_.push_back(PermutedIndex(KeyOf(kSeed), 99, options.rows, i));
    }
    out_.resize(uint64_t{options.batch} * options.columns * files_.size());
  }

  double Copy() {
    const double start = Milliseconds();
    const uint64_t columns = options_.columns;
    for (uint32_t begin = 0; begin < options_.rows; begin += options_.batch) {
      const uint32_t end = std::min(begin + options_.batch, options_.rows);
      float* to = out_.data();
      for (const NpyArray& file : files_) {
        for (uint32_t i = begin; i < end; ++i, to += columns) {
          std::memcpy(to, file.values<float>().data() + rows_[i] * columns, columns * 4);
        }
      }
    }
    return Milliseconds() - start;
  }

  // Copies with the loader's own loops: the part of assembly that is copying.
  double Copying() {
    const double start = Milliseconds();
    for (uint32_t begin = 0; begin < options_.rows; begin += options_.batch) {
      const uint64_t count = std::min(options_.batch, options_.rows - begin);
      float* to = out_.data();
      for (const NpyArray& file : files_) {
        const std::span<float> out(to, count * options_.columns);
        GatherRows(RowTable(file.values<float>(), options_.columns),
                   std::span(rows_).subspan(begin, count), out);
        to += out.size();
      }
    }
    return Milliseconds() - start;
  }

  // Reads every line of every row, with rows further on prefetched at this processor's best level,
  // and writes nothing.
  double Probe() {
    constexpr uint64_t kLine = 64;
    constexpr uint64_t kLinesAhead = 128;
    const PrefetchLevel level = BestPrefetchLevel();
    const uint64_t bytes = options_.columns * sizeof(float);
    const uint64_t ahead = std::max<uint64_t>(1, kLinesAhead * kLine / bytes);
    uint64_t sum = 0;
    const double start = Milliseconds();
    for (uint32_t begin = 0; begin < options_.rows; begin += options_.batch) {
      const uint64_t end = std::min(begin + options_.batch, options_.rows);
      for (const NpyArray& file : files_) {
        const auto* base = reinterpret_cast<const std::byte*>(file.values<float>().data());
        for (uint64_t i = begin; i < end; ++i) {
          const std::byte* const row = base + rows_[i] * bytes;
          const std::byte* const next = base + rows_[std::min(i + ahead, end - 1)] * bytes;
          for (uint64_t at = 0; at < bytes; at += kLine) {
            Prefetch(level, next + at);
            sum += static_cast<uint64_t>(row[at]);
          }
        }
      }
    }
    asm volatile("" : : "r"(sum));
    return Milliseconds() - start;
  }

 private:
  const Options options_;
  std::vector<NpyArray> files_;
  std::vector<uint32_t> rows_;
  std::vector<float> out_;
};

int Measure(const Options& options) {
  omp_set_num_threads(static_cast<int>(options.threads));
  Trainer single(options, 1, RowTier::kHost);
  Trainer chunks(options, ChunkOf(options), RowTier::kHost);
  Trainer disk(options, ChunkOf(options), RowTier::kDisk);
  Options one = options;
  one.threads = 1;
  Trainer alone(one, 1, RowTier::kHost);
  Floor floor(options);
  // The rule of cache.prefetch AUTO: read ahead if training leaves a core free.
  const bool ahead = options.threads < std::thread::hardware_concurrency();
  struct Way {
    const char* name;
    std::function<double()> run;
    std::vector<double> times{};
  };
  Way ways[] = {{"assembly", [&] { return single.Epoch(false); }},
                {"prefetch", [&] { return single.Epoch(true); }},
                {"chunks", [&] { return chunks.Epoch(ahead); }},
                {"disk", [&] { return disk.Epoch(ahead); }},
                {"gather", [&] { return alone.Assemble(); }},
                {"copying", [&] { return floor.Copying(); }},
                {"copy", [&] { return floor.Copy(); }},
                {"probe", [&] { return floor.Probe(); }}};
  for (uint32_t round = 0; round <= options.rounds; ++round) {
    for (Way& way : ways) {
      if (!options.Has(way.name)) continue;
      omp_set_num_threads(static_cast<int>(options.threads));
      const double took = way.run();
      if (round > 0) way.times.push_back(took);
    }
  }
  std::string json;
  for (const Way& way : ways) {
    if (way.times.empty()) continue;
    json += std::string(",\"") + way.name + "\":" + std::to_string(Median(way.times) / 1000);
  }
  std::printf(
      "{\"rows\":%u,\"columns\":%u,\"tokens\":%u,\"batch\":%u,\"chunk\":%u,\"bytes\":%lu,"
      "\"ahead\":%d%s}\n",
      options.rows, options.columns, options.tokens(), options.batch, ChunkOf(options),
      options.epoch_bytes(), ahead ? 1 : 0, json.c_str());
  return 0;
}

int Main(int argc, char** argv) {
  Options options;
  if (argc < 6) {
    std::fprintf(stderr, "usage: rows_bench make|epoch FOLDER ROWS COLUMNS HOPS [--model ...]\n");
    return 2;
  }
  const auto number = [](const char* text) {
    return static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
  };
  options.folder = argv[2];
  options.rows = number(argv[3]);
  options.columns = number(argv[4]);
  options.hops = number(argv[5]);
  for (int i = 6; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--model") options.is_sgc = std::string_view(argv[i + 1]) == "sgc";
    if (name == "--batch") options.batch = number(argv[i + 1]);
    if (name == "--threads") options.threads = number(argv[i + 1]);
    if (name == "--rounds") options.rounds = number(argv[i + 1]);
    if (name == "--ways") options.ways = argv[i + 1];
  }
  return std::string_view(argv[1]) == "make" ? Make(options) : Measure(options);
}

}  // namespace
}  // namespace gnnd::bench

int main(int argc, char** argv) { return gnnd::bench::Main(argc, argv); }
