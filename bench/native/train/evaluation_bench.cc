// Measures exact evaluation of GraphSAGE on a power-law graph, beside the time that its bytes and
// products take at rates measured on the spot.
//
//   evaluation_bench [--nodes 2449029] [--edges 123718280] [--features 100] [--hidden 256]
//                    [--classes 47] [--layers 3] [--trainers 2] [--threads 1]
//                    [--budget 8589934592] [--targets test|val] [--rounds 3] [--dump FOLDER]
//
// Trainers of so many threads each share a scratch and take chunks, as in a job. `test` are 90 % of
// the nodes, `val` 1.6 %. Where hidden rows exceed the budget they lie in a file of the working
// folder. --dump writes graph, features, parameters and logits for bench/peers/evaluation.py. The
// floor: every row that is gathered for an edge, at the rate at which this host touches random rows
// of that width with as many threads; every product, at the rate of blocks of 1,024 rows; every
// hidden row once into a file of that size where they lie in one, since a system writes what
// exceeds its share of dirty pages to the disk while it is made. A table, then one line of JSON.

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench_util.h"
#include "core/base/check.h"
#include "core/base/prefetch.h"
#include "core/executor/eval_scratch.h"
#include "core/metric/metric.h"
#include "power_law_graph.h"
#include "train/evaluate/eval_plan.h"
#include "train/layers/model.h"
#include "train/ops/affine.h"
#include "train/work/torch_work.h"

namespace gnnd::bench {
namespace {

struct Arguments {
  std::map<std::string, std::string> given;

  uint64_t Number(const std::string& name, uint64_t otherwise) const {
    const auto at = given.find(name);
    return at == given.end() ? otherwise : std::strtoull(at->second.c_str(), nullptr, 10);
  }
  std::string Text(const std::string& name, const std::string& otherwise) const {
    const auto at = given.find(name);
    return at == given.end() ? otherwise : at->second;
  }
};

Arguments ArgumentsOf(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    GNND_CHECK(std::strncmp(argv[i], "--", 2) == 0);
    arguments.given[argv[i] + 2] = argv[i + 1];
  }
  return arguments;
}

struct Data {
  Graph graph;
  HugeArray<float> features;
  std::vector<int32_t> labels;
  std::vector<int64_t> targets;
};

Data DataOf(const Arguments& arguments, const ModelSpec& model) {
  const auto nodes = static_cast<uint32_t>(arguments.Number("nodes", 2'449'029));
  Data data{PowerLawGraph(nodes, arguments.Number("edges", 123'718'280)),
            HugeArray<float>(uint64_t{nodes} * model.in_dim),
            {},
            {}};
  Random random;
  for (uint64_t i = 0; i < data.features.size(); ++i) {
    data.features[i] = static_cast<float>(random.Unit()) - 0.5F;
  }
  const bool test = arguments.Text("targets", "test") == "test";
  for (uint32_t v = 0; v < nodes; ++v) {
    data.labels.push_back(static_cast<int32_t>(random.Below(model.out_dim)));
    const uint32_t draw = random.Below(1000);
    if (test ? draw < 904 : draw >= 984) data.targets.push_back(v);
  }
  return data;
}

// Seconds in which `threads` threads run `body` at once, each with one of torch's threads.
double Together(uint32_t threads, const std::function<void(uint32_t)>& body) {
  std::barrier start(static_cast<std::ptrdiff_t>(threads) + 1);
  std::vector<std::thread> team;
  for (uint32_t t = 0; t < threads; ++t) {
    team.emplace_back([&, t] {
      at::set_num_threads(1);
      start.arrive_and_wait();
      body(t);
    });
  }
  start.arrive_and_wait();
  const double begin = Milliseconds();
  for (std::thread& thread : team) thread.join();
  return (Milliseconds() - begin) / 1e3;
}

volatile float sink = 0;

// Rows a second that `threads` touch together, each row whole, in the order of the graph's edges.
double RowRate(const Data& data, const HugeArray<float>& table, uint64_t columns,
               uint32_t threads) {
  constexpr uint64_t kRows = 1'500'000;
  constexpr uint64_t kAhead = 12;
  const uint64_t edges = std::min<uint64_t>(kRows, data.graph.indices.size() / threads);
  const double seconds = Together(threads, [&](uint32_t t) {
    const uint32_t* index = data.graph.indices.data() + t * edges;
    float sum = 0;
    for (uint64_t e = 0; e < edges; ++e) {
      if (e + kAhead < edges) {
        const float* next = table.data() + index[e + kAhead] * columns;
        for (uint64_t c = 0; c < columns; c += 16) __builtin_prefetch(next + c);
      }
      const float* row = table.data() + index[e] * columns;
      for (uint64_t c = 0; c < columns; c += 16) sum += row[c];
    }
    sink = sum;
  });
  return static_cast<double>(edges * threads) / seconds;
}

// Multiply-adds a second of `threads` together, each in blocks of 1,024 rows.
double ProductRate(int64_t in, int64_t out, uint32_t threads) {
  constexpr int kBlocks = 40;
  const double seconds = Together(threads, [&](uint32_t) {
    const at::Tensor x = at::empty({1024, in}).fill_(0.5F);
    const at::Tensor weight = at::empty({out, in}).fill_(0.25F);
    const at::Tensor to = at::empty({1024, out});
    Workspace workspace;
    for (int block = 0; block < kBlocks; ++block) {
      workspace.Reset();
      RunAffine({x, weight, {}, {}, {}, {}, to}, &workspace);
    }
  });
  return 1024.0 * static_cast<double>(in * out) * kBlocks * threads / seconds;
}

struct Floor {
  double bytes = 0;
  double multiply_adds = 0;
  double gather_seconds = 0;
  double product_seconds = 0;
  double write_bytes = 0;
  double write_seconds = 0;

  double seconds() const { return gather_seconds + product_seconds + write_seconds; }
};

// Seconds to write a file of this size into `folder`, in order and in large pieces.
double WriteSeconds(uint64_t bytes, const std::string& folder) {
  const Result<UniqueFd> file = EvalScratch::Create(bytes, folder);
  GNND_CHECK(file.ok());
  const std::vector<char> piece(size_t{1} << 20, 'x');
  return Together(1, [&](uint32_t) {
    for (uint64_t at = 0; at < bytes; at += piece.size()) {
      const size_t part = std::min<uint64_t>(piece.size(), bytes - at);
      GNND_CHECK(pwrite(file->get(), piece.data(), part, static_cast<off_t>(at)) ==
                 static_cast<ssize_t>(part));
    }
  });
}

// The time to read each edge's row, multiply each phase's rows and write `file_bytes` of them.
Floor FloorOf(const Data& data, const ModelSpec& model, uint32_t threads, uint64_t file_bytes) {
  const TopologyView topology = data.graph.view();
  std::vector<uint32_t> targets(data.targets.begin(), data.targets.end());
  const uint32_t layers[] = {model.num_layers - 1};
  const EvalGraph graph{topology};
  const auto plan = PlanEvaluation(graph, model, {targets, layers}, [] { return true; });
  GNND_CHECK(plan.ok());
  HugeArray<float> table(uint64_t{topology.num_nodes()} *
                         std::max({model.in_dim, model.hidden_dim, model.out_dim}));
  for (uint64_t i = 0; i < table.size(); ++i) table[i] = 1;
  Floor floor;
  std::vector<uint32_t> nodes;
  const auto products = [&](double rows, uint32_t in, uint32_t out) {
    floor.multiply_adds += rows * in * out;
    floor.product_seconds += rows * in * out / ProductRate(in, out, threads);
  };
  for (uint32_t layer = 0; layer < model.num_layers; ++layer) {
    const LayerShape shape = ShapeOf(model, layer);
    const bool first = plan->transforms_first[layer];
    const uint32_t columns = first ? shape.out : shape.in;
    nodes.clear();
    plan->sets[layer + 1].List(0, topology.num_nodes(), &nodes);
    double edges = 0;
    for (const uint32_t v : nodes) edges += static_cast<double>(topology.degree(v));
    const double lines = std::ceil(columns / 16.0);
    floor.bytes += edges * lines * 64;
    floor.gather_seconds += edges / RowRate(data, table, columns, threads);
    const auto rows = static_cast<double>(nodes.size());
    products(first ? static_cast<double>(plan->sets[layer].Count()) : rows, shape.in, shape.out);
    products(rows, shape.in, shape.out);  // products of the rows themselves
  }
  floor.write_bytes = static_cast<double>(file_bytes);
  floor.write_seconds = file_bytes == 0 ? 0 : WriteSeconds(file_bytes, ".");
  return floor;
}

struct Outcome {
  double seconds = 0;
  uint64_t rows = 0;
  uint64_t correct = 0;
};

// One run by all Trainers: one phase after another, with chunks in turn.
Outcome Run(std::vector<std::unique_ptr<TorchWork>>& works, const std::vector<float>& parameters) {
  const auto trainers = static_cast<uint32_t>(works.size());
  std::atomic<uint32_t> next{0};
  std::atomic<uint64_t> rows{0};
  std::atomic<uint64_t> correct{0};
  std::barrier phase_end(static_cast<std::ptrdiff_t>(trainers), [&]() noexcept { next = 0; });
  const auto alive = [] { return true; };
  Outcome outcome;
  outcome.seconds = Together(trainers, [&](uint32_t t) {
    const Result<EvalShape> shape = works[t]->PlanEvaluation(EvalNodes::kTest, alive);
    GNND_CHECK(shape.ok());
    EvalTask task;
    task.run.nodes = EvalNodes::kTest;
    for (task.phase = 0; task.phase < shape->phases; ++task.phase) {
      while ((task.chunk = next.fetch_add(1)) < shape->chunks) {
        EvalResult result{};
        GNND_CHECK(works[t]->EvaluateChunk(task, {.floats = parameters}, alive, &result).ok());
        rows += result.rows;
        correct += result.sums.counts[kCorrect];
      }
      phase_end.arrive_and_wait();
    }
  });
  works[0]->EndEvaluation(EvalRun{});
  outcome.rows = rows;
  outcome.correct = correct;
  return outcome;
}

template <typename T>
void Write(const std::string& path, std::span<const T> values) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size_bytes()));
  GNND_CHECK(file.good());
}

// Writes raw little-endian arrays, and logits of the first targets to compare with.
void Dump(const std::string& folder, const Data& data, TorchWork& work,
          const std::vector<float>& parameters) {
  mkdir(folder.c_str(), 0755);
  const TopologyView topology = data.graph.view();
  Write<uint64_t>(folder + "/indptr.u64", topology.indptr);
  Write<uint32_t>(folder + "/indices.u32", topology.indices);
  Write<float>(folder + "/features.f32", {data.features.data(), data.features.size()});
  for (const ParameterTensor& tensor : work.manifest().tensors) {
    Write<float>(folder + "/" + tensor.name + ".f32",
                 std::span(parameters).subspan(tensor.offset, tensor.size()));
  }
  const std::vector<uint32_t> nodes(data.targets.begin(), data.targets.begin() + 1000);
  std::vector<float> logits;
  Write<uint32_t>(folder + "/nodes.u32", nodes);
  GNND_CHECK(work.Predict(
                     parameters, nodes, [] { return true; },
                     [&](std::span<const uint32_t> part, const float* values) {
                       const uint64_t classes = work.manifest().tensors.back().rows;
                       logits.insert(logits.end(), values, values + part.size() * classes);
                       return Status::Ok();
                     })
                 .ok());
  Write<float>(folder + "/logits.f32", logits);
}

struct Setting {
  uint32_t layers = 0;
  uint32_t trainers = 0;
  uint64_t scratch_bytes = 0;
  bool in_memory = true;
};

// Prints a table for people and a line of JSON.
void Print(const Data& data, const Setting& setting, const std::vector<double>& seconds,
           const Floor& floor, uint64_t rows) {
  const double median = Median(seconds);
  const double ratio = median / floor.seconds();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double peak_bytes = static_cast<double>(usage.ru_maxrss) * 1024;
  const double flop = 2 * floor.multiply_adds;
  std::printf("%zu nodes, %zu edges, %zu targets, %u Trainers, hidden rows in %s\n",
              data.labels.size(), data.graph.indices.size(), data.targets.size(), setting.trainers,
              setting.in_memory ? "memory" : "a file");
  std::printf(
      "evaluation %.2f s; floor %.2f s (gather %.1f GB in %.2f s, products %.0f GFLOP in "
      "%.2f s, a file of %.1f GB in %.2f s); ratio %.2f; rows %llu; peak memory %.2f GB\n",
      median, floor.seconds(), floor.bytes / 1e9, floor.gather_seconds, flop / 1e9,
      floor.product_seconds, floor.write_bytes / 1e9, floor.write_seconds, ratio,
      static_cast<unsigned long long>(rows), peak_bytes / 1e9);
  std::printf(
      "{\"bench\":\"evaluation\",\"peer\":\"gnnd\",\"nodes\":%zu,\"edges\":%zu,"
      "\"targets\":%zu,\"layers\":%u,\"trainers\":%u,\"in_memory\":%s,"
      "\"scratch_bytes\":%llu,\"seconds\":%.3f,\"first_seconds\":%.3f,"
      "\"floor_seconds\":%.3f,\"gather_bytes\":%.0f,\"gather_seconds\":%.3f,"
      "\"flop\":%.0f,\"product_seconds\":%.3f,\"write_bytes\":%.0f,\"write_seconds\":%.3f,"
      "\"ratio\":%.3f,\"rows\":%llu,\"peak_bytes\":%.0f}\n",
      data.labels.size(), data.graph.indices.size(), data.targets.size(), setting.layers,
      setting.trainers, setting.in_memory ? "true" : "false",
      static_cast<unsigned long long>(setting.scratch_bytes), median, seconds[0], floor.seconds(),
      floor.bytes, floor.gather_seconds, flop, floor.product_seconds, floor.write_bytes,
      floor.write_seconds, ratio, static_cast<unsigned long long>(rows), peak_bytes);
}

int Main(int argc, char** argv) {
  const Arguments arguments = ArgumentsOf(argc, argv);
  const auto trainers = static_cast<uint32_t>(arguments.Number("trainers", 2));
  const auto threads = static_cast<uint32_t>(arguments.Number("threads", 1));
  const uint64_t budget = arguments.Number("budget", uint64_t{8} << 30);
  TrainOptions options;
  options.model.in_dim = static_cast<uint32_t>(arguments.Number("features", 100));
  options.model.hidden_dim = static_cast<uint32_t>(arguments.Number("hidden", 256));
  options.model.out_dim = static_cast<uint32_t>(arguments.Number("classes", 47));
  options.model.num_layers = static_cast<uint32_t>(arguments.Number("layers", 3));
  options.random_seed = 17;
  options.threads = threads;
  const Data data = DataOf(arguments, options.model);
  options.features =
      RowTable(std::span(data.features.data(), data.features.size()), options.model.in_dim);
  options.targets.labels = data.labels;
  options.topology = data.graph.view();
  options.test_nodes = data.targets;
  const EvalLayout layout = EvalLayout::Of(options.model, data.labels.size());
  const bool in_memory = layout.total_bytes <= budget;
  const Result<UniqueFd> scratch =
      EvalScratch::Create(layout.total_bytes, in_memory ? std::string() : std::string("."));
  GNND_CHECK(scratch.ok());
  options.eval_place.fd = scratch->get();
  std::vector<std::unique_ptr<TorchWork>> works;
  for (uint32_t t = 0; t < trainers; ++t) {
    auto work = TorchWork::Create(options);
    GNND_CHECK(work.ok());
    works.push_back(std::move(*work));
  }
  std::vector<float> parameters(works[0]->manifest().num_floats);
  works[0]->InitParameters(parameters);
  const Floor floor =
      FloorOf(data, options.model, trainers * threads, in_memory ? 0 : layout.total_bytes);
  std::vector<double> seconds;
  Outcome outcome;
  for (uint64_t round = 0; round < arguments.Number("rounds", 3); ++round) {
    outcome = Run(works, parameters);
    seconds.push_back(outcome.seconds);
  }
  if (const std::string folder = arguments.Text("dump", ""); !folder.empty()) {
    Dump(folder, data, *works[0], parameters);
  }
  Print(data, {options.model.num_layers, trainers, layout.total_bytes, in_memory}, seconds, floor,
        outcome.rows);
  return 0;
}

}  // namespace
}  // namespace gnnd::bench

int main(int argc, char** argv) { return gnnd::bench::Main(argc, argv); }
