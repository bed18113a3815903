// Measures a Trainer's step, by model.
//
//   model_bench [ROUNDS [MODEL [THREADS]]]      (21 rounds, all models, 1 thread)
//
// Batches of 1,024 seeds, fanouts 10 and 10, on a skewed graph of 300,000 nodes and 4.5 million
// edges; 128 features, hidden 256, 44 classes, dropout 0.3; in float32 and in bfloat16,
// batch by batch in turns. Medians over batches that differ: extraction, gradient, optimizer. A
// line for people and one of JSON per model and precision.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench_util.h"
#include "core/base/check.h"
#include "train/work/torch_work.h"

namespace gnnd::bench {
namespace {

constexpr uint32_t kNodes = 300'000;
constexpr uint32_t kClasses = 44;
constexpr uint32_t kFeatures = 128;

struct Data {
  Data() : graph(SkewedGraph(kNodes, 15, 1)) {
    std::mt19937_64 random(3);
    std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
    features.resize(uint64_t{kNodes} * kFeatures);
    for (float& value : features) value = uniform(random);
    for (uint32_t v = 0; v < kNodes; ++v) labels.push_back(static_cast<int32_t>(v % kClasses));
  }

  test::TestGraph graph;
  std::vector<float> features;
  std::vector<int32_t> labels;
};

struct Times {
  std::vector<double> extract;
  std::vector<double> gradient;
  std::vector<double> apply;
};

struct Candidate {
  const char* name;
  ModelType type;
  uint32_t hidden;
  uint32_t heads;
};

// One Trainer with parameters of its own.
class Contestant {
 public:
  Contestant(const Data& data, const Candidate& candidate, Precision precision, uint32_t threads)
      : candidate_(candidate), precision_(precision) {
    TrainOptions options;
    options.model.type = candidate.type;
    options.model.in_dim = kFeatures;
    options.model.hidden_dim = candidate.hidden;
    options.model.out_dim = kClasses;
    options.model.heads = candidate.heads;
    options.model.dropout = 0.3F;
    options.precision = precision;
    options.threads = threads;
    options.features = RowTable(data.features, options.model.in_dim);
    options.targets.labels = data.labels;
    options.topology = data.graph.view();
    auto work = TorchWork::Create(options);
    GNND_CHECK(work.ok());
    work_ = std::move(*work);
    parameters_.resize(work_->manifest().num_floats);
    work_->InitParameters(parameters_);
    next_parameters_.resize(parameters_.size());
    gradient_.resize(parameters_.size());
    memory_.resize(work_->optimizer_floats());
    next_memory_.resize(memory_.size());
  }

  void Step(const Sample& sample, uint32_t batch, bool counted) {
    BatchReport report;
    ExtractReport extract;
    const double start = Milliseconds();
    GNND_CHECK(work_->Extract(sample, 0, &extract).ok());
    const double extracted = Milliseconds();
    GNND_CHECK(work_->ComputeGradient(sample, 0, {batch, 0, parameters_}, gradient_, &report).ok());
    const double computed = Milliseconds();
    const GradientView gradients[] = {{batch, true, gradient_}};
    work_->Apply({batch, report.sums.items, gradients, parameters_, memory_, next_parameters_,
                  next_memory_});
    const double applied = Milliseconds();
    parameters_.swap(next_parameters_);
    memory_.swap(next_memory_);
    if (!counted) return;
    times_.extract.push_back(extracted - start);
    times_.gradient.push_back(computed - extracted);
    times_.apply.push_back(applied - computed);
    loss_ = report.sums.loss / static_cast<double>(report.sums.items);
  }

  void Print(uint32_t rounds) const {
    const char* precision = precision_ == Precision::kBfloat16 ? "bfloat16" : "float32";
    const double extract = Median(times_.extract);
    const double compute = Median(times_.gradient);
    const double apply = Median(times_.apply);
    std::printf(
        "%-10s %-8s extract %7.2f  gradient %7.2f  optimizer %5.2f  step %7.2f ms  loss %.4f\n",
        candidate_.name, precision, extract, compute, apply, extract + compute + apply, loss_);
    std::printf(
        "{\"bench\":\"step\",\"model\":\"%s\",\"precision\":\"%s\",\"hidden\":%u,\"heads\":%u,"
        "\"rounds\":%u,\"extract_ms\":%.3f,\"gradient_ms\":%.3f,\"optimizer_ms\":%.3f}\n",
        candidate_.name, precision, candidate_.hidden, candidate_.heads, rounds, extract, compute,
        apply);
  }

 private:
  Candidate candidate_;
  Precision precision_;
  std::unique_ptr<TorchWork> work_;
  std::vector<float> parameters_;
  std::vector<float> next_parameters_;
  std::vector<float> gradient_;
  std::vector<float> memory_;
  std::vector<float> next_memory_;
  Times times_;
  double loss_ = 0;  // loss of the last batch per seed
};

void RunModel(const Data& data, const Candidate& candidate, uint32_t rounds, uint32_t threads) {
  Contestant wide(data, candidate, Precision::kFloat32, threads);
  Contestant narrow(data, candidate, Precision::kBfloat16, threads);
  for (uint32_t batch = 0; batch < rounds + 2; ++batch) {
    const test::TestRecord record(data.graph, {{7, 0, batch},
                                               DistinctNodes(1024, kNodes, 100 + batch),
                                               {10, 10},
                                               candidate.type == ModelType::kGcn});
    const bool counted = batch >= 2;  // memory still grows in the first batches
    wide.Step(record.view(), batch, counted);
    narrow.Step(record.view(), batch, counted);
  }
  wide.Print(rounds);
  narrow.Print(rounds);
}

void Main(uint32_t rounds, const std::string& only, uint32_t threads) {
  const Data data;
  const Candidate candidates[] = {
      {"GraphSAGE", ModelType::kGraphSage, 256, 1}, {"GCN", ModelType::kGcn, 256, 1},
      {"PinSAGE", ModelType::kPinSage, 256, 1},     {"GAT 8x8", ModelType::kGat, 64, 8},
      {"GAT 8x32", ModelType::kGat, 256, 8},        {"GATv2 8x8", ModelType::kGatV2, 64, 8},
      {"GATv2 8x32", ModelType::kGatV2, 256, 8}};
  for (const Candidate& candidate : candidates) {
    if (only.empty() || only == candidate.name) RunModel(data, candidate, rounds, threads);
  }
}

}  // namespace
}  // namespace gnnd::bench

int main(int argc, char** argv) {
  gnnd::bench::Main(argc > 1 ? static_cast<uint32_t>(std::atoi(argv[1])) : 21,
                    argc > 2 ? argv[2] : "",
                    argc > 3 ? static_cast<uint32_t>(std::atoi(argv[3])) : 1);
  return 0;
}
