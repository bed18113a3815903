#include "train/work/torch_work.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/metric/metric.h"
#include "partition.h"
#include "test/support/block_types.h"
#include "test/support/halves.h"
#include "test/support/record_builder.h"
#include "training_loop.h"

namespace gnnd {
namespace {

using test::EvalReport;
using test::Loop;
using test::Partition;
using test::SameBits;
using test::TestGraph;
using test::TestRecord;

TEST_CASE("full-batch GCN learns a planted partition") {
  const Partition data(300, 4, 8, 1);
  TrainOptions options = data.Options(ModelType::kGcn);
  options.model.dropout = 0.3F;
  options.model.input_dropout = 0.1F;
  options.optimizer.weight_decay = 5e-4;
  options.optimizer.weight_decay_scope = WeightDecayScope::kFirstLayer;
  Loop loop(options);
  BatchReport report;
  for (uint32_t epoch = 0; epoch < 100; ++epoch) {
    report = loop.Step(TestRecord(data.graph, {{17, epoch, 0}, data.train, {-1, -1}, true}));
  }
  CHECK(report.sums.items == data.train.size());
  CHECK(static_cast<double>(report.sums.counts[kCorrect]) >
        0.9 * static_cast<double>(report.sums.items));
  const EvalReport eval = loop.Evaluate();
  CHECK(eval.test_nodes == data.test.size());
  CHECK(static_cast<double>(eval.test_correct) > 0.9 * static_cast<double>(eval.test_nodes));
}

TEST_CASE("sampled GraphSAGE learns a planted partition") {
  const Partition data(300, 4, 8, 2);
  TrainOptions options = data.Options(ModelType::kGraphSage);
  options.model.dropout = 0.3F;
  Loop loop(options);
  BatchReport report;
  for (uint32_t epoch = 0; epoch < 30; ++epoch) {
    for (uint32_t batch = 0; batch < 3; ++batch) {
      const auto first = data.train.begin() + batch * 60;
      report = loop.Step(
          TestRecord(data.graph, {{17, epoch, batch}, {first, first + 60}, {5, 5}, false}));
    }
  }
  CHECK(static_cast<double>(report.sums.counts[kCorrect]) >
        0.9 * static_cast<double>(report.sums.items));
}

void TwoHoldTheSameBits(Precision precision) {
  const Partition data(200, 4, 40, 3);
  for (const ModelType type : test::BlockTypes()) {
    TrainOptions options = data.Options(type);
    options.precision = precision;
    if (IsAttention(type)) {
      options.model.heads = 4;
      options.model.attention_dropout = 0.2F;
    }
    options.model.dropout = 0.5F;
    Loop one(options);
    Loop other(options);
    for (uint32_t batch = 0; batch < 5; ++batch) {
      const TestRecord record(
          data.graph, {{17, 0, batch}, {batch, 50 + batch, 90}, {4, 4}, type == ModelType::kGcn});
      one.Step(record);
      other.Step(record);
      REQUIRE(SameBits(one.gradient(), other.gradient()));
    }
    CHECK(SameBits(one.parameters(), other.parameters()));
    CHECK(one.Evaluate().val_loss_sum == other.Evaluate().val_loss_sum);
  }
}

TEST_CASE("two Trainers that see the same batches hold the same bits") {
  TwoHoldTheSameBits(Precision::kFloat32);
}

TEST_CASE("two Trainers that see the same batches in bfloat16 hold the same bits") {
  TwoHoldTheSameBits(Precision::kBfloat16);
}

TEST_CASE("in bfloat16 every model learns a planted partition") {
  const Partition data(300, 4, 8, 1);
  for (const ModelType type : test::BlockTypes()) {
    INFO(static_cast<uint32_t>(type));
    TrainOptions options = data.Options(type);
    options.precision = Precision::kBfloat16;
    if (IsAttention(type)) options.model.heads = 4;
    Loop loop(options);
    BatchReport report;
    for (uint32_t epoch = 0; epoch < 60; ++epoch) {
      report = loop.Step(
          TestRecord(data.graph, {{17, epoch, 0}, data.train, {-1, -1}, type == ModelType::kGcn}));
    }
    CHECK(static_cast<double>(report.sums.counts[kCorrect]) >
          0.9 * static_cast<double>(report.sums.items));
  }
}

// Records whose bottom block is aggregated from the table, and others whose rows are gathered.
std::vector<TestRecord> SparseAndDense(const Partition& data, bool gcn) {
  std::vector<TestRecord> records;
  for (uint32_t batch = 0; batch < 3; ++batch) {
    for (const int32_t fanout : {1, -1}) {
      records.emplace_back(
          data.graph,
          test::RecordRequest{{17, 0, batch}, {batch, 50 + batch, 90}, {2, fanout}, gcn});
    }
  }
  return records;
}

TEST_CASE("features in float16 give the bits of float32 features of the same values") {
  Partition data(200, 4, 37, 21);
  const std::vector<Half> halves = test::RandomHalves(data.features.size(), 22);
  data.features = test::Widened(halves);
  std::vector<uint32_t> order(data.labels.size());
  std::iota(order.rbegin(), order.rend(), 0);
  std::vector<uint32_t> nodes(data.labels.size());
  std::iota(nodes.begin(), nodes.end(), 0);
  for (const ModelType type : test::BlockTypes()) {
    for (const float input_dropout : {0.0F, 0.25F}) {
      TrainOptions options = data.Options(type);
      options.model.input_dropout = input_dropout;
      options.model.residual = type == ModelType::kGcn;
      if (IsAttention(type)) options.model.heads = 4;
      Loop in_float(options);
      options.features = RowTable(halves, options.model.in_dim);
      options.hot_order = order;
      options.cache_rows = 70;
      Loop in_half(options);
      for (const TestRecord& record : SparseAndDense(data, type == ModelType::kGcn)) {
        in_float.Step(record);
        in_half.Step(record);
        REQUIRE(SameBits(in_half.gradient(), in_float.gradient()));
      }
      CHECK(SameBits(in_half.parameters(), in_float.parameters()));
      CHECK(in_half.Evaluate().val_loss_sum == in_float.Evaluate().val_loss_sum);
      CHECK(SameBits(test::LogitsOf(in_float.work(), in_float.parameters(), nodes),
                     test::LogitsOf(in_half.work(), in_half.parameters(), nodes)));
    }
  }
}

TEST_CASE("sampled attention and PinSAGE learn a planted partition") {
  const Partition data(300, 4, 8, 12);
  for (const ModelType type : {ModelType::kGat, ModelType::kGatV2, ModelType::kPinSage}) {
    TrainOptions options = data.Options(type);
    options.optimizer.type = OptimizerType::kAdamW;
    options.optimizer.weight_decay = 1e-3;
    options.optimizer.clip_norm = 5;
    options.optimizer.schedule = {ScheduleType::kCosine, 1, 0.1, 2, 3, 30};
    options.model.activation = Activation::kElu;
    if (IsAttention(type)) options.model.heads = 4;
    Loop loop(options);
    BatchReport report;
    for (uint32_t epoch = 0; epoch < 30; ++epoch) {
      for (uint32_t batch = 0; batch < 3; ++batch) {
        const auto first = data.train.begin() + batch * 60;
        report = loop.Step(
            TestRecord(data.graph, {{17, epoch, batch}, {first, first + 60}, {5, 5}, false}));
      }
    }
    INFO(static_cast<uint32_t>(type));
    CHECK(static_cast<double>(report.sums.counts[kCorrect]) >
          0.85 * static_cast<double>(report.sums.items));
  }
}

TEST_CASE("prediction refuses nodes that are not in the graph and gives up when told to") {
  const Partition data(100, 4, 8, 13);
  Loop loop(data.Options(ModelType::kGraphSage));
  Code taken = Code::kOk;
  const auto predict = [&](std::vector<uint32_t> nodes, bool alive) {
    const auto take = [&](std::span<const uint32_t>, const float*) { return Status(taken, ""); };
    return loop.work().Predict(loop.parameters(), nodes, [alive] { return alive; }, take).code();
  };
  CHECK(predict({100}, true) == Code::kInvalidArgument);
  CHECK(predict({3, 3}, true) == Code::kInvalidArgument);
  CHECK(predict({4, 3}, true) == Code::kInvalidArgument);
  CHECK(predict({3}, false) == Code::kAborted);
  CHECK(predict({3}, true) == Code::kOk);
  taken = Code::kIo;
  CHECK(predict({3}, true) == Code::kIo);
}

TEST_CASE("a gradient depends on its batch alone, not on batches before it") {
  const Partition data(200, 4, 40, 4);
  TrainOptions options = data.Options(ModelType::kGraphSage);
  options.model.dropout = 0.5F;
  const TestRecord small(data.graph, {{17, 0, 0}, {1, 2}, {2, 2}, false});
  const TestRecord large(data.graph, {{17, 0, 1}, data.train, {-1, -1}, false});
  std::vector<float> fresh;
  {
    Loop loop(options);
    loop.Step(small);
    fresh = loop.gradient();
  }
  Loop loop(options);
  std::vector<float> parameters = loop.parameters();
  std::vector<float> gradient(parameters.size());
  BatchReport report;
  ExtractReport extracted;
  for (const TestRecord* record : {&large, &small}) {
    REQUIRE(loop.work().Extract(record->view(), 0, &extracted).ok());
    REQUIRE(loop.work()
                .ComputeGradient(record->view(), 0, {.floats = parameters}, gradient, &report)
                .ok());
  }
  CHECK(SameBits(gradient, fresh));
}

TEST_CASE("a batch extracted while another one is computed leaves the same bits") {
  const Partition data(2000, 4, 33, 5);
  for (const ModelType type : {ModelType::kGraphSage, ModelType::kGcn, ModelType::kGat}) {
    for (const float input_dropout : {0.0F, 0.4F}) {
      for (const uint32_t threads : {1U, 2U}) {
        INFO("model ", static_cast<int>(type), " input dropout ", input_dropout, " threads ",
             threads);
        TrainOptions options = data.Options(type);
        options.model.input_dropout = input_dropout;
        options.threads = threads;
        const bool gcn = type == ModelType::kGcn;
        std::vector<std::unique_ptr<TestRecord>> records;
        std::vector<const TestRecord*> order;
        // Few edges per source (aggregated while they are read) and many (gathered once).
        for (uint32_t batch = 0; batch < 8; ++batch) {
          const std::vector<int32_t> fanouts =
              batch % 2 == 0 ? std::vector<int32_t>{2, 1} : std::vector<int32_t>{-1, 9};
          records.push_back(std::make_unique<TestRecord>(
              data.graph, test::RecordRequest{{17, 0, batch}, data.train, fanouts, gcn}));
          order.push_back(records.back().get());
        }
        Loop plain(options);
        for (const TestRecord* record : order) plain.Step(*record);
        Loop ahead(options);
        ahead.StepAhead(order);
        CHECK(SameBits(ahead.gradient(), plain.gradient()));
        CHECK(SameBits(ahead.parameters(), plain.parameters()));
        CHECK(plain.extracted().work_bytes > 0);
      }
    }
  }
}

TEST_CASE("a record whose words were overwritten is refused, or trained within its bounds") {
  const Partition data(200, 3, 6, 5);
  const char* given = std::getenv("GNND_SEED");
  const uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  int refused = 0;
  int trained = 0;
  for (const ModelType type : {ModelType::kGcn, ModelType::kGraphSage, ModelType::kGat}) {
    const TrainOptions options = data.Options(type);
    auto work = TorchWork::Create(options);
    REQUIRE(work.ok());
    const uint64_t floats = (*work)->manifest().num_floats;
    std::vector<float> parameters(floats);
    std::vector<float> gradient(floats);
    (*work)->InitParameters(parameters);
    const TestRecord good(data.graph,
                          {{3, 0, 0}, {5, 9, 77, 140}, {4, 4}, type == ModelType::kGcn});
    // Behind the record begins a page that nobody may read.
    const RecordHeader& header = OwnHeader(good.bytes());
    const uint64_t bytes = (header.extent_bytes + 4095) / 4096 * 4096;
    void* address =
        mmap(nullptr, bytes + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(address != MAP_FAILED);
    REQUIRE(mprotect(address, bytes, PROT_READ | PROT_WRITE) == 0);
    const std::span<uint32_t> words(static_cast<uint32_t*>(address), header.extent_bytes / 4);
    for (uint64_t seed = first; seed < first + (given != nullptr ? 1 : 400); ++seed) {
      INFO("GNND_SEED=", seed);
      std::mt19937_64 draw(seed);
      std::memcpy(address, good.bytes().data(), header.extent_bytes);
      for (uint64_t changes = 1 + draw() % 3; changes > 0; --changes) {
        // Sections begin on pages, so most words are at some page's start.
        const uint64_t at = draw() % (words.size() / 1024) * 1024 + draw() % 60;
        words[at] = draw() % 2 == 0 ? static_cast<uint32_t>(draw() % 300) : words[at] + 1;
      }
      const auto sample = OpenRecord(std::as_bytes(words));
      ExtractReport extracted;
      BatchReport report;
      Status status = sample.status();
      if (sample.ok()) status = (*work)->Extract(*sample, 0, &extracted);
      if (sample.ok() && status.ok()) {
        status = (*work)->ComputeGradient(*sample, 0, {.floats = parameters}, gradient, &report);
      }
      status.ok() ? ++trained : ++refused;
    }
    munmap(address, bytes + 4096);
  }
  if (given == nullptr) CHECK(refused > 300);
  if (given == nullptr) CHECK(trained > 50);
}

TEST_CASE("a loss that is not finite is numeric divergence") {
  const Partition data(100, 4, 8, 7);
  Loop loop(data.Options(ModelType::kGraphSage));
  const TestRecord record(data.graph, {{17, 0, 0}, {1, 2, 5}, {3, 3}, false});
  std::vector<float> parameters = loop.parameters();
  std::vector<float> gradient(parameters.size());
  parameters[0] = std::numeric_limits<float>::quiet_NaN();
  BatchReport report;
  ExtractReport extracted;
  REQUIRE(loop.work().Extract(record.view(), 1, &extracted).ok());
  const Status status =
      loop.work().ComputeGradient(record.view(), 1, {.floats = parameters}, gradient, &report);
  CHECK(status.code() == Code::kNumericDivergence);
  EvalReport eval;
  CHECK(test::Evaluate(
            loop.work(), parameters, [] { return true; }, &eval)
            .code() == Code::kNumericDivergence);
}

TEST_CASE("a record that does not fit the model is refused") {
  const Partition data(100, 4, 8, 8);
  ExtractReport extracted;
  Loop sage(data.Options(ModelType::kGraphSage));
  const TestRecord one_hop(data.graph, {{17, 0, 0}, {1, 2, 5}, {3}, false});
  CHECK(sage.work().Extract(one_hop.view(), 0, &extracted).code() == Code::kShmCorrupted);
  Loop gcn(data.Options(ModelType::kGcn));
  const TestRecord unweighted(data.graph, {{17, 0, 0}, {1, 2, 5}, {3, 3}, false});
  CHECK(gcn.work().Extract(unweighted.view(), 0, &extracted).code() == Code::kShmCorrupted);
  const Partition larger(200, 4, 8, 9);
  const TestRecord beyond(larger.graph, {{17, 0, 0}, {150}, {3, 3}, false});
  CHECK(sage.work().Extract(beyond.view(), 0, &extracted).code() == Code::kShmCorrupted);
}

TEST_CASE("a training node without a label is a corrupt dataset") {
  Partition data(100, 4, 8, 10);
  data.labels[5] = -1;
  ExtractReport extracted;
  Loop loop(data.Options(ModelType::kGraphSage));
  const TestRecord record(data.graph, {{17, 0, 0}, {1, 2, 5}, {3, 3}, false});
  CHECK(loop.work().Extract(record.view(), 0, &extracted).code() == Code::kDatasetCorrupt);
}

TEST_CASE("options that contradict each other are refused") {
  const Partition data(100, 4, 8, 11);
  const auto refused = [&data](auto&& change) {
    TrainOptions options = data.Options(ModelType::kGcn);
    change(options);
    const auto work = TorchWork::Create(options);
    return work.ok() ? Code::kOk : work.status().code();
  };
  CHECK(refused([](TrainOptions&) {}) == Code::kOk);
  CHECK(refused([](TrainOptions& o) { o.optimizer.learning_rate = 0; }) == Code::kInvalidArgument);
  CHECK(refused([](TrainOptions& o) { o.optimizer.beta2 = 1; }) == Code::kInvalidArgument);
  CHECK(refused([](TrainOptions& o) { o.threads = 0; }) == Code::kInvalidArgument);
  CHECK(refused([](TrainOptions& o) { o.optimizer.weight_decay = -1; }) == Code::kInvalidArgument);
  CHECK(refused([](TrainOptions& o) { o.model.in_dim = 9; }) == Code::kInvalidArgument);
  CHECK(refused([](TrainOptions& o) { o.topology.indptr = o.topology.indptr.first(50); }) ==
        Code::kInvalidArgument);
  CHECK(refused([](TrainOptions& o) { o.model.out_dim = 2; }) == Code::kDatasetCorrupt);
  const std::vector<int64_t> outside = {100};
  CHECK(refused([&](TrainOptions& o) { o.val_nodes = outside; }) == Code::kInvalidArgument);
}

}  // namespace
}  // namespace gnnd
