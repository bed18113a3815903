#include "train/layers/history.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "core/base/huge_array.h"
#include "device_data.h"
#include "history_options.h"
#include "partition.h"
#include "test/support/block_types.h"
#include "test/support/record_builder.h"
#include "train/work/torch_work.h"
#include "training_loop.h"

namespace gnnd {
namespace {

using test::Partition;
using test::TestRecord;
using test::WithHistory;

const std::vector<ModelType> kModels = test::BlockTypes();

TrainOptions ModelOf(const Partition& data, ModelType type, uint32_t layers) {
  TrainOptions options = data.Options(type);
  options.model.num_layers = layers;
  if (IsAttention(type)) options.model.heads = 4;
  return options;
}

// One Trainer of its own history. With `learns` each step changes the parameters.
class Steps {
 public:
  explicit Steps(const TrainOptions& options) {
    auto created = TorchWork::Create(options);
    REQUIRE_MESSAGE(created.ok(), created.status().message());
    work_ = std::move(*created);
    parameters_.resize(work_->manifest().num_floats);
    gradient_.resize(parameters_.size());
    memory_.resize(work_->optimizer_floats());
    work_->InitParameters(parameters_);
  }

  BatchReport Run(const TestRecord& record, bool learns) {
    const Sample sample = record.view();
    if (work_->keeps_history()) REQUIRE(work_->BringHistoryTo({version_, 0, 1}).ok());
    extracted_ = ExtractReport();
    REQUIRE(work_->Extract(sample, 0, &extracted_).ok());
    BatchReport report;
    const Status computed =
        work_->ComputeGradient(sample, 0, {version_, 0, parameters_}, gradient_, &report);
    REQUIRE_MESSAGE(computed.ok(), computed.message());
    if (learns) {
      std::vector<float> parameters(parameters_.size());
      std::vector<float> memory(memory_.size());
      const GradientView gradients[] = {{version_, true, gradient_}};
      work_->Apply(
          {version_, report.sums.items, gradients, parameters_, memory_, parameters, memory});
      parameters_ = std::move(parameters);
      memory_ = std::move(memory);
    }
    ++version_;
    return report;
  }

  uint64_t Hits() const {
    uint64_t hits = 0;
    for (const uint64_t of : extracted_.history.level_hits) hits += of;
    return hits;
  }
  // Parameters so far along a direction.
  void Move(const std::vector<float>& direction, double step) {
    for (size_t i = 0; i < direction.size(); ++i) {
      parameters_[i] += static_cast<float>(step * direction[i]);
    }
  }
  const ExtractReport& extracted() const { return extracted_; }
  const std::vector<float>& parameters() const { return parameters_; }
  const std::vector<float>& gradient() const { return gradient_; }

 private:
  std::unique_ptr<TorchWork> work_;
  std::vector<float> parameters_;
  std::vector<float> memory_;
  std::vector<float> gradient_;
  ExtractReport extracted_;
  uint64_t version_ = 0;
};

TEST_CASE("history: stored rows that are the true ones give the loss that computing gives") {
  const Partition data(200, 4, 8, 5);
  for (const ModelType type : kModels) {
    for (const uint32_t levels : {0b010U, 0b100U, 0b110U}) {
      CAPTURE(static_cast<uint32_t>(type));
      CAPTURE(levels);
      const TrainOptions plain = ModelOf(data, type, 3);
      // Full neighbourhoods and frozen weights: what a batch computes of a node is what any does.
      const auto request = [&](uint32_t batch) {
        std::vector<uint32_t> seeds;
        for (uint32_t i = 0; i < 20; ++i) seeds.push_back(data.train[batch * 7 + i]);
        return TestRecord(data.graph,
                          {{17, 0, batch}, seeds, {-1, -1, -1}, type == ModelType::kGcn});
      };
      Steps without(plain);
      Steps with(WithHistory(plain, levels, 1, 100));
      for (uint32_t batch = 0; batch < 6; ++batch) {
        const BatchReport expected = without.Run(request(batch), false);
        const BatchReport report = with.Run(request(batch), false);
        CHECK(std::abs(report.sums.loss - expected.sums.loss) <= 1e-5 * expected.sums.loss);
        CHECK((with.Hits() > 0) == (batch > 0));
      }
    }
  }
}

// Nodes whose features a batch of full neighbourhoods reads when all rows of layer 2 are stored but
// those of its seeds: these, and what is within two steps of them.
std::set<uint32_t> NearSeeds(const Sample& sample) {
  std::set<uint32_t> rows;
  for (uint32_t seed = 0; seed < sample.num_seeds(); ++seed) rows.insert(seed);
  for (uint32_t hop = 1; hop < sample.num_hops(); ++hop) {
    const BlockView& block = sample.block(hop);
    for (const uint32_t row : std::set<uint32_t>(rows)) {
      for (uint32_t e = block.indptr[row]; e < block.indptr[row + 1]; ++e) {
        rows.insert(block.src[e]);
      }
    }
  }
  std::set<uint32_t> nodes;
  for (const uint32_t row : rows) nodes.insert(sample.nodes()[row]);
  return nodes;
}

TEST_CASE("history: what is pruned is never read") {
  Partition data(200, 4, 8, 6);
  for (const ModelType type : kModels) {
    CAPTURE(static_cast<uint32_t>(type));
    std::vector<float> features = data.features;
    TrainOptions options = WithHistory(ModelOf(data, type, 3), 0b100, 1, 100);
    options.features = RowTable(features, options.model.in_dim);
    Steps steps(options);
    // Then all its rows of layer 2 are stored, except the seeds'.
    const TestRecord few(data.graph, {{17, 0, 0}, {0, 1}, {-1, -1, -1}, type == ModelType::kGcn});
    steps.Run(few, false);
    const std::set<uint32_t> read = NearSeeds(few.view());
    REQUIRE(read.size() < few.view().nodes().size());
    for (uint32_t node = 0; node < 200; ++node) {
      if (read.contains(node)) continue;
      std::fill_n(features.begin() + node * options.model.in_dim, options.model.in_dim,
                  std::numeric_limits<float>::quiet_NaN());
    }
    const BatchReport report = steps.Run(few, false);
    CHECK(std::isfinite(report.sums.loss));
    CHECK(std::ranges::all_of(steps.gradient(), [](float value) { return std::isfinite(value); }));
    CHECK(steps.extracted().history.pruned_rows == few.view().nodes().size() - read.size());
    CHECK(steps.extracted().traffic.rows[static_cast<uint32_t>(Tier::kHost)] == read.size());
  }
}

// Were there gradients through stored rows, they would be in the gradient and not in how the loss
// changes, which reads those rows as they are.
TEST_CASE("history: no gradient goes through stored rows") {
  const Partition data(200, 4, 8, 6);
  const std::vector<uint32_t> seeds(data.train.begin(), data.train.begin() + 40);
  for (const ModelType type : kModels) {
    CAPTURE(static_cast<uint32_t>(type));
    const TrainOptions options = WithHistory(ModelOf(data, type, 3), 0b100, 1, 100);
    const TestRecord record(data.graph, {{17, 0, 0}, seeds, {-1, -1, -1}, type == ModelType::kGcn});
    Steps steps(options);
    steps.Run(record, false);
    steps.Run(record, false);
    CHECK(steps.Hits() > 0);
    const std::vector<float> gradient = steps.gradient();
    double length = 0;  // squared
    for (const float value : gradient) length += double{value} * value;
    const auto loss_at = [&](double step) {
      Steps moved(options);
      moved.Run(record, false);
      moved.Move(gradient, step);
      return moved.Run(record, false).sums.loss;
    };
    const double step = 1e-3 / std::sqrt(length);
    const double change = (loss_at(step) - loss_at(-step)) / (2 * step);
    CHECK(change == doctest::Approx(length).epsilon(0.02));
  }
}

TEST_CASE("history: of rows that are read only those that are reached are") {
  Partition data(300, 4, 8, 7);
  std::vector<float> features = data.features;
  TrainOptions options = WithHistory(ModelOf(data, ModelType::kGraphSage, 2), 0b10, 0.5, 100);
  options.features = RowTable(features, options.model.in_dim);
  Steps steps(options);
  const std::vector<uint32_t> seeds(data.train.begin(), data.train.begin() + 30);
  const TestRecord record(data.graph, {{17, 0, 0}, seeds, {-1, -1}, false});
  steps.Run(record, false);
  steps.Run(record, false);
  const HistoryReport& report = steps.extracted().history;
  CHECK(steps.Hits() > 0);
  CHECK(steps.Hits() < report.look_ups);
  CHECK(report.pruned_rows > 0);
  CHECK(report.pruned_rows < record.view().nodes().size());
  CHECK(steps.extracted().traffic.rows[static_cast<uint32_t>(Tier::kHost)] + report.pruned_rows ==
        record.view().nodes().size());
}

TEST_CASE("history: without a share or an age nothing is stored, and every bit is the plain one") {
  const Partition data(200, 4, 8, 8);
  for (const ModelType type : kModels) {
    CAPTURE(static_cast<uint32_t>(type));
    TrainOptions plain = ModelOf(data, type, 2);
    plain.model.dropout = 0.4F;
    Steps without(plain);
    Steps no_share(WithHistory(plain, 0b10, 0, 100));
    Steps no_age(WithHistory(plain, 0b10, 0.9, 0));
    for (uint32_t batch = 0; batch < 6; ++batch) {
      const std::vector<uint32_t> seeds(data.train.begin() + batch * 10,
                                        data.train.begin() + batch * 10 + 30);
      const TestRecord record(data.graph, {{17, 0, batch}, seeds, {3, 3}, type == ModelType::kGcn});
      without.Run(record, true);
      no_share.Run(record, true);
      no_age.Run(record, true);
      CHECK(no_share.Hits() == 0);
      CHECK(no_age.Hits() == 0);
      CHECK(no_share.parameters() == without.parameters());
      CHECK(no_age.parameters() == without.parameters());
    }
  }
}

TEST_CASE("history: the same batches make the same model, with dropout, in every precision") {
  const Partition data(200, 4, 40, 9);
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    for (const ModelType type : kModels) {
      CAPTURE(static_cast<uint32_t>(type));
      TrainOptions options = ModelOf(data, type, 3);
      options.precision = precision;
      options.model.dropout = 0.3F;
      options = WithHistory(options, 0b110, 0.8, 3);
      Steps one(options);
      Steps other(options);
      uint64_t hits = 0;
      for (uint32_t batch = 0; batch < 8; ++batch) {
        const std::vector<uint32_t> seeds(data.train.begin() + batch * 5,
                                          data.train.begin() + batch * 5 + 30);
        const TestRecord record(data.graph,
                                {{17, 0, batch}, seeds, {3, 3, 3}, type == ModelType::kGcn});
        one.Run(record, true);
        other.Run(record, true);
        hits += one.Hits();
        CHECK(one.parameters() == other.parameters());
      }
      CHECK(hits > 0);
    }
  }
}

TEST_CASE("history: rows with norms and other activations are kept complete") {
  const Partition data(200, 4, 8, 10);
  for (const Normalization norm :
       {Normalization::kNone, Normalization::kL2, Normalization::kLayer}) {
    for (const Activation activation : {Activation::kElu, Activation::kLeakyRelu}) {
      TrainOptions plain = ModelOf(data, ModelType::kGraphSage, 2);
      plain.model.normalization = norm;
      plain.model.activation = activation;
      plain.model.residual = true;
      const std::vector<uint32_t> seeds(data.train.begin(), data.train.begin() + 40);
      const TestRecord record(data.graph, {{17, 0, 0}, seeds, {-1, -1}, false});
      Steps without(plain);
      Steps with(WithHistory(plain, 0b10, 0.7, 9));
      for (uint32_t step = 0; step < 3; ++step) {
        const double expected = without.Run(record, false).sums.loss;
        CHECK(std::abs(with.Run(record, false).sums.loss - expected) <= 1e-5 * expected);
      }
      CHECK(with.Hits() > 0);
    }
  }
}

TEST_CASE("history: rows that are computed again are compared with what was stored of them") {
  const Partition data(200, 4, 8, 13);
  for (const bool learns : {false, true}) {
    CAPTURE(learns);
    TrainOptions options = WithHistory(ModelOf(data, ModelType::kGraphSage, 2), 0b10, 1, 1);
    options.optimizer.learning_rate = 0.1;
    Steps steps(options);
    const auto record = [&](uint32_t begin, uint32_t count) {
      const auto first = data.train.begin() + begin;
      const std::vector<uint32_t> seeds(first, first + count);
      return TestRecord(data.graph, {{17, 0, 0}, seeds, {-1, -1}, false});
    };
    CHECK(steps.Run(record(0, 30), learns).history.compared == 0);
    steps.Run(record(80, 1), learns);
    // All rows that remain from the first batch are stale by now.
    const HistoryUpdate again = steps.Run(record(0, 30), learns).history;
    REQUIRE(again.compared > 10);
    CHECK(again.compared <= 64);
    CHECK(again.lag <= 2 * again.compared);
    CHECK(again.lag > again.compared);
    const double cosine = static_cast<double>(again.cosine_millionths) / 1e6;
    // With full neighbourhoods, only learning moves a row.
    CHECK((cosine > 0.999 * static_cast<double>(again.compared)) == !learns);
    CHECK(again.similar <= again.compared);
    if (!learns) CHECK(again.similar == again.compared);
  }
}

TEST_CASE("history: cached features in its memory give way to embeddings, and decide no bit") {
  for (const bool is_half : {false, true}) {
    for (const ModelType type : kModels) {
      CAPTURE(is_half);
      CAPTURE(static_cast<uint32_t>(type));
      test::Data data(12);
      data.AddSamples(type == ModelType::kGcn);
      TrainOptions options = WithHistory(data.Options(type, is_half), 0b10, 0.9, 100);
      HistoryConfig& config = options.history.config;
      // Room for as many embeddings as replace all but seven cached rows.
      config.feature_bytes = test::kDim * (is_half ? 2 : 4);
      const uint64_t places = (test::kCached - 7) * config.feature_bytes / config.row_bytes;
      config.bytes = places * config.row_bytes;
      test::Loop without(options);
      config.cache_rows = test::kCached;
      // Mapped, as a dataset is: a heap may lie out of reach.
      const std::span<const std::byte> given = options.features.bytes();
      HugeArray<std::byte> mapped(given.size());
      std::copy(given.begin(), given.end(), mapped.data());
      options.features =
          RowTable(options.features.type(), {mapped.data(), mapped.size()}, options.features.dim());
      test::Loop beside(options);
      uint64_t border = test::kCached;
      for (uint32_t round = 0; round < 20; ++round) {
        for (const Sample& sample : data.samples) {
          without.Step(sample);
          beside.Step(sample);
          REQUIRE(test::SameBits(beside.parameters(), without.parameters()));
          const ExtractReport& report = beside.extracted();
          CHECK(report.cache_rows == test::kCached);
          CHECK(test::kCached - report.cache_given_up_rows <= border);
          border = test::kCached - report.cache_given_up_rows;
          CHECK(report.traffic.rows[static_cast<uint32_t>(Tier::kDevice)] <= border);
        }
      }
      CHECK(border < test::kCached);
      CHECK(border >= 7);
      CHECK(without.extracted().cache_rows == 0);
    }
  }
}

TEST_CASE("history: a second cache, or one on a device's side, is refused beside cached features") {
  test::Data data(13);
  TrainOptions options = WithHistory(data.Options(ModelType::kGraphSage, false), 0b10, 0.9, 10);
  options.history.config.feature_bytes = test::kDim * 4;
  options.history.config.cache_rows = 5;
  options.cache_rows = 5;
  CHECK(TorchWork::Create(options).status().code() == Code::kInvalidArgument);
  options.cache_rows = 0;
  options.history.config.feature_bytes = 4;
  CHECK(TorchWork::Create(options).status().code() == Code::kInvalidArgument);
}

TEST_CASE("history: what a model cannot keep is refused") {
  const Partition data(50, 4, 8, 11);
  const TrainOptions good = WithHistory(ModelOf(data, ModelType::kGcn, 2), 0b10, 0.9, 5);
  const auto refused = [](const TrainOptions& options) {
    const auto created = TorchWork::Create(options);
    return !created.ok() && created.status().code() == Code::kInvalidArgument;
  };
  CHECK(!refused(good));
  TrainOptions options = good;
  options.history.levels = 0b100;  // the seeds
  CHECK(refused(options));
  options = good;
  options.history.config.row_bytes = 4;
  CHECK(refused(options));
  options = good;
  options.history.p_grad = 1.5;
  CHECK(refused(options));
  options = good;
  options.model.num_layers = 1;
  CHECK(refused(options));
}

}  // namespace
}  // namespace gnnd
