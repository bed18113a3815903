// A Trainer's step, by model.
//
//   model_bench [ROUNDS]      (21 rounds)
//
// Batches of 1,024 seeds, fanouts 10 and 10, on a skewed graph of 300,000 nodes and 4.5 million
// edges; 128 features, hidden 256, 44 classes, dropout 0.3; one thread. Medians over batches that
// differ: extraction, gradient, optimizer. A line for people and one of JSON per model.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "bench_util.h"
#include "core/base/check.h"
#include "train/torch_work.h"

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

void RunModel(const Data& data, const Candidate& candidate, uint32_t rounds) {
  TrainOptions options;
  options.model.type = candidate.type;
  options.model.in_dim = kFeatures;
  options.model.hidden_dim = candidate.hidden;
  options.model.out_dim = kClasses;
  options.model.heads = candidate.heads;
  options.model.dropout = 0.3F;
  options.features = RowTable(data.features, options.model.in_dim);
  options.labels = data.labels;
  options.topology = data.graph.view();
  auto work = TorchWork::Create(options);
  GNND_CHECK(work.ok());
  const uint64_t floats = (*work)->manifest().num_floats;
  std::vector<float> parameters(floats);
  (*work)->InitParameters(parameters);
  std::vector<float> memory((*work)->optimizer_floats());
  std::vector<float> next_parameters(floats);
  std::vector<float> next_memory(memory.size());
  std::vector<float> gradient(floats);
  Times times;
  for (uint32_t batch = 0; batch < rounds + 2; ++batch) {
    const test::TestRecord record(data.graph, {{7, 0, batch},
                                               DistinctNodes(1024, kNodes, 100 + batch),
                                               {10, 10},
                                               candidate.type == ModelType::kGcn});
    const Sample sample = record.view();
    BatchReport report;
    ExtractReport extract;
    const double start = Milliseconds();
    GNND_CHECK((*work)->Extract(sample, 0, &extract).ok());
    const double extracted = Milliseconds();
    GNND_CHECK((*work)->ComputeGradient(sample, 0, parameters, gradient, &report).ok());
    const double computed = Milliseconds();
    const std::span<const float> gradients[] = {gradient};
    (*work)->Apply(gradients, report.seeds, batch + 1, parameters, memory, next_parameters,
                   next_memory);
    const double applied = Milliseconds();
    parameters.swap(next_parameters);
    memory.swap(next_memory);
    if (batch < 2) continue;  // memory is still growing
    times.extract.push_back(extracted - start);
    times.gradient.push_back(computed - extracted);
    times.apply.push_back(applied - computed);
  }
  const double extract = Median(times.extract);
  const double compute = Median(times.gradient);
  const double apply = Median(times.apply);
  std::printf("%-14s extract %7.2f  gradient %7.2f  optimizer %5.2f  step %7.2f ms\n",
              candidate.name, extract, compute, apply, extract + compute + apply);
  std::printf(
      "{\"bench\":\"step\",\"model\":\"%s\",\"hidden\":%u,\"heads\":%u,\"rounds\":%u,"
      "\"extract_ms\":%.3f,\"gradient_ms\":%.3f,\"optimizer_ms\":%.3f}\n",
      candidate.name, candidate.hidden, candidate.heads, rounds, extract, compute, apply);
}

void Main(uint32_t rounds) {
  const Data data;
  const Candidate candidates[] = {
      {"GraphSAGE", ModelType::kGraphSage, 256, 1}, {"GCN", ModelType::kGcn, 256, 1},
      {"PinSAGE", ModelType::kPinSage, 256, 1},     {"GAT 8x8", ModelType::kGat, 64, 8},
      {"GAT 8x32", ModelType::kGat, 256, 8},        {"GATv2 8x8", ModelType::kGatV2, 64, 8},
      {"GATv2 8x32", ModelType::kGatV2, 256, 8}};
  for (const Candidate& candidate : candidates) RunModel(data, candidate, rounds);
}

}  // namespace
}  // namespace gnnd::bench

int main(int argc, char** argv) {
  gnnd::bench::Main(argc > 1 ? static_cast<uint32_t>(std::atoi(argv[1])) : 21);
  return 0;
}
