#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "evaluate.h"
#include "test/support/sampling.h"
#include "test/support/typed_graphs.h"
#include "train/layers/relational.h"
#include "train/ops/ops.h"
#include "train/work/torch_work.h"

namespace gnnd {
namespace {

constexpr uint32_t kItems = 400;
constexpr uint32_t kHubs = 40;
constexpr uint32_t kClasses = 4;

// Items of four classes, whose own features are noise, and hubs that know theirs: an item is of the
// class of its hubs.
struct Hubs {
  explicit Hubs(uint64_t random_seed) {
    std::mt19937_64 generator(random_seed);
    std::normal_distribution<float> noise;
    for (uint32_t v = 0; v < kItems; ++v) {
      labels.push_back(static_cast<int32_t>(generator() % kClasses));
      (v % 2 == 0 ? train : v % 4 == 1 ? val : test).push_back(v);
      for (uint32_t c = 0; c < 5; ++c) items.push_back(noise(generator));
    }
    std::vector<std::vector<uint32_t>> of_hub(kHubs);
    test::Graph to_items;
    test::Graph to_hubs;
    test::Graph among;
    for (uint32_t v = 0; v < kItems; ++v) {
      std::vector<uint32_t> row;
      for (uint32_t h = 0; h < kHubs; ++h) {
        if (h % kClasses == static_cast<uint32_t>(labels[v]) && generator() % 3 == 0) {
          row.push_back(h);
          of_hub[h].push_back(v);
        }
      }
      to_items.AddRow(row);
      std::vector<uint32_t> others(generator() % 4);
      for (uint32_t& u : others) u = static_cast<uint32_t>(generator() % kItems);
      std::ranges::sort(others);
      among.AddRow(others);
    }
    for (uint32_t h = 0; h < kHubs; ++h) {
      to_hubs.AddRow(of_hub[h]);
      for (uint32_t c = 0; c < kClasses; ++c) {
        hubs.push_back((h % kClasses == c ? 1.0F : 0.0F) + 0.1F * noise(generator));
      }
    }
    graph.num_nodes = {kItems, kHubs};
    graph.relations = {{1, 0, to_items}, {0, 1, to_hubs}, {0, 0, among}};
  }

  TypedOptions Options(ModelType type) const {
    TypedOptions options;
    options.graph = graph.view();
    options.rows = {RowTable(std::span(items), 5), RowTable(std::span(hubs), kClasses)};
    TrainOptions& own = options.own;
    own.model.type = type;
    own.model.hidden_dim = 16;
    own.model.out_dim = kClasses;
    own.model.dropout = 0.2F;
    own.model.heads = type == ModelType::kHgt ? 4 : 1;
    own.model.graph = {{{"item", 5}, {"hub", kClasses}},
                       {{1, "holds", 0}, {0, "rev_holds", 1}, {0, "knows", 0}}};
    own.random_seed = 17;
    own.features = options.rows[0];
    own.targets.width = kClasses;
    own.targets.labels = labels;
    own.val_nodes = val;
    own.test_nodes = test;
    own.eval_place.memory_bytes = UINT64_MAX;
    own.optimizer.learning_rate = 0.01;
    return options;
  }

  test::TypedGraph graph;
  std::vector<float> items;
  std::vector<float> hubs;
  std::vector<int32_t> labels;
  std::vector<int64_t> train;
  std::vector<int64_t> val;
  std::vector<int64_t> test;
};

// Draws batches of a typed graph into a slot of its own.
class TypedBatches {
 public:
  TypedBatches(const GraphView& graph, const SamplerOptions& options, uint32_t batch_size)
      : layout_(*RecordLayout::Of(LimitsOf(graph, 0, batch_size, options))),
        sampler_(graph, options, layout_, DetectInstructionSet()),
        slot_(layout_.slot_bytes()) {}

  // The view is valid until the next call.
  Sample Draw(const BatchKey& key, std::span<const int64_t> items) {
    const std::vector<uint32_t> seeds(items.begin(), items.end());
    REQUIRE(sampler_.Sample(key, seeds, slot_).ok());
    return OwnSample(slot_);
  }

 private:
  RecordLayout layout_;
  Sampler sampler_;
  std::vector<std::byte> slot_;
};

// One Trainer with G = 1.
struct Trainer {
  explicit Trainer(const TypedOptions& options) {
    auto created = TorchWork::Create(options);
    REQUIRE_MESSAGE(created.ok(), created.status().message());
    work = std::move(*created);
    parameters.resize(work->manifest().num_floats);
    gradient.resize(parameters.size());
    memory.resize(work->optimizer_floats());
    work->InitParameters(parameters);
  }

  void Step(const Sample& sample) {
    ExtractReport extracted;
    BatchReport report;
    REQUIRE(work->Extract(sample, 0, &extracted).ok());
    uint64_t nodes = 0;
    for (uint32_t type = 0; type < sample.num_node_types(); ++type) {
      nodes += sample.nodes(type).size();
    }
    CHECK(extracted.traffic.rows[static_cast<uint32_t>(Tier::kHost)] == nodes);
    REQUIRE(work->ComputeGradient(sample, 0, {step, 0, parameters}, gradient, &report).ok());
    std::vector<float> next(parameters.size());
    std::vector<float> next_memory(memory.size());
    const GradientView gradients[] = {{step, true, gradient}};
    work->Apply({step++, report.sums.items, gradients, parameters, memory, next, next_memory});
    parameters = std::move(next);
    memory = std::move(next_memory);
  }

  std::vector<float> Logits(std::span<const uint32_t> nodes) {
    std::vector<float> logits;
    const auto take = [&](std::span<const uint32_t> part, const float* values) {
      logits.insert(logits.end(), values, values + part.size() * kClasses);
      return Status::Ok();
    };
    REQUIRE(work->Predict(parameters, nodes, [] { return true; }, take).ok());
    return logits;
  }

  std::unique_ptr<TorchWork> work;
  std::vector<float> parameters;
  std::vector<float> gradient;
  std::vector<float> memory;
  uint64_t step = 0;
};

constexpr ModelType kTypes[] = {ModelType::kRsage, ModelType::kRgcn, ModelType::kHgt};

void Learns(const Hubs& data, Expansion expansion) {
  for (const ModelType type : kTypes) {
    CAPTURE(KindOf(type).name);
    Trainer trainer(data.Options(type));
    SamplerOptions sampler;
    sampler.fanouts = {4, 4};
    sampler.expansion = expansion;
    TypedBatches batches(data.graph.view(), sampler, 50);
    for (uint32_t epoch = 0; epoch < 20; ++epoch) {
      for (uint32_t batch = 0; batch < 4; ++batch) {
        trainer.Step(
            batches.Draw({17, epoch, batch}, std::span(data.train).subspan(50 * batch, 50)));
      }
    }
    test::EvalReport report;
    REQUIRE(test::Evaluate(*trainer.work, trainer.parameters, [] { return true; }, &report).ok());
    CHECK(report.test_nodes == data.test.size());
    CHECK(static_cast<double>(report.test_correct) > 0.9 * static_cast<double>(report.test_nodes));
  }
}

TEST_CASE("models over relations learn what only another type of nodes knows") {
  Learns(Hubs(5), Expansion::kAll);
}

TEST_CASE("models over relations learn from batches in which each node has one row") {
  Learns(Hubs(9), Expansion::kNew);
}

TEST_CASE("exact rows are those of a batch with whole neighbourhoods") {
  const Hubs data(6);
  for (const ModelType type : kTypes) {
    CAPTURE(KindOf(type).name);
    TypedOptions options = data.Options(type);
    options.own.model.dropout = 0;
    Trainer trainer(options);
    SamplerOptions sampler;
    sampler.fanouts = {-1, -1};
    TypedBatches batches(data.graph.view(), sampler, kItems);
    const Sample sample = batches.Draw({17, 0, 0}, data.test);
    const Result<TypedInput> input = TypedInput::Of(options);
    REQUIRE(input.ok());
    TypedBuffer buffer;
    ExtractReport extracted;
    REQUIRE(ExtractTyped(*input, sample, &buffer, &extracted).ok());
    const Model model(options.own.model);
    Workspace memory;
    const auto parameters = ViewsOf(model.manifest, trainer.parameters, at::kCPU);
    const at::Tensor rows = ForwardTyped(model, parameters, sample, buffer.rows, false, &memory);
    const std::vector<uint32_t> nodes(data.test.begin(), data.test.end());
    const std::vector<float> logits = trainer.Logits(nodes);
    REQUIRE(logits.size() == static_cast<size_t>(rows.numel()));
    const float* const expected = rows.const_data_ptr<float>();
    for (size_t i = 0; i < logits.size(); ++i) REQUIRE(std::abs(logits[i] - expected[i]) < 1e-4);
  }
}

TEST_CASE("bits of models over relations do not depend on threads, nor on who runs a chunk") {
  const Hubs data(7);
  for (const ModelType type : kTypes) {
    CAPTURE(KindOf(type).name);
    TypedOptions options = data.Options(type);
    Trainer one(options);
    options.own.threads = 2;
    Trainer two(options);
    SamplerOptions sampler;
    sampler.fanouts = {4, 4};
    TypedBatches batches(data.graph.view(), sampler, 100);
    for (uint32_t batch = 0; batch < 2; ++batch) {
      const Sample sample =
          batches.Draw({17, 0, batch}, std::span(data.train).subspan(100 * batch, 100));
      one.Step(sample);
      two.Step(sample);
    }
    CHECK(one.parameters == two.parameters);
    const std::vector<uint32_t> nodes(data.val.begin(), data.val.end());
    CHECK(one.Logits(nodes) == two.Logits(nodes));
  }
}

TEST_CASE("a record that does not fit the graph is refused") {
  const Hubs data(8);
  SamplerOptions sampler;
  sampler.fanouts = {4, 4};
  Trainer trainer(data.Options(ModelType::kRsage));
  ExtractReport report;
  const auto refused = [&](const test::TypedGraph& other) {
    TypedBatches batches(other.view(), sampler, 4);
    const int64_t seeds[] = {0, 1, 2, 3};
    const Status status = trainer.work->Extract(batches.Draw({17, 0, 0}, seeds), 0, &report);
    CHECK(status.code() == Code::kShmCorrupted);
  };
  test::TypedGraph one = data.graph;
  one.num_nodes.pop_back();
  one.relations = {data.graph.relations[2]};
  refused(one);
  test::TypedGraph swapped = data.graph;
  std::swap(swapped.relations[0], swapped.relations[2]);
  refused(swapped);
}

}  // namespace
}  // namespace gnnd
