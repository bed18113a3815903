#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "agree.h"
#include "link_data.h"
#include "test/device/support.h"
#include "training_loop.h"
#include "undo_torch_check.h"

namespace gnnd {
namespace {

using test::Agree;
using test::HasProcessorsProducts;
using test::LinkBatch;
using test::LinkData;
using test::Loop;
using test::Rejoin;
using test::SameBits;

constexpr LinkHead kHeads[] = {LinkHead::kDot, LinkHead::kCosine, LinkHead::kDistMult,
                               LinkHead::kBilinear, LinkHead::kMlp};

// Negatives of each link of some batches; 0: those of the batch.
std::vector<uint32_t> NegativesOf(LinkHead head) {
  if (head == LinkHead::kMlp) return {1, 5, 2};
  return {1, 5, 0};
}

LinkBatch BatchOf(const LinkData& data, ModelType type, uint32_t number, uint32_t negatives) {
  return {data, {17, 0, number}, 120, negatives, {4, 3}, type == ModelType::kGcn};
}

double MeanLoss(const BatchReport& report) {
  return report.sums.loss / static_cast<double>(report.sums.items);
}

}  // namespace

TEST_CASE("every head and loss learns which nodes belong together") {
  LinkData data(400, 12, true, 3);
  for (const LinkHead head : kHeads) {
    for (const LinkLoss loss :
         {LinkLoss::kBce, LinkLoss::kBceBalanced, LinkLoss::kBpr, LinkLoss::kSoftmax}) {
      CAPTURE(static_cast<int>(head));
      CAPTURE(static_cast<int>(loss));
      data.use.loss = {loss, head == LinkHead::kCosine ? 0.2 : 1.0};
      Loop loop(data.Options(ModelType::kGraphSage, head));
      double before = 0;
      double after = 0;
      for (uint32_t batch = 0; batch < 60; ++batch) {
        const LinkBatch links = BatchOf(data, ModelType::kGraphSage, batch, 3);
        const BatchReport report = loop.Step(links.view());
        CHECK(report.sums.items == 120);
        (batch < 5 ? before : after) += batch < 5 || batch >= 55 ? MeanLoss(report) : 0;
      }
      CHECK(after < 0.95 * before);
    }
  }
}

TEST_CASE("a weight is a factor of a link's loss, and of its negatives'") {
  LinkData data(400, 12, true, 3);
  const auto links = static_cast<uint32_t>(data.train.size() / 2);
  struct Computed {
    double loss;
    std::vector<float> gradient;
  };
  const auto computed = [&](const LinkWeights& weights, uint32_t negatives) {
    data.use.weights = weights;
    Loop loop(data.Options(ModelType::kGraphSage, LinkHead::kDot));
    const BatchReport report = loop.Step(BatchOf(data, ModelType::kGraphSage, 3, negatives).view());
    CHECK(report.sums.items == 120);
    return Computed{report.sums.loss, loop.gradient()};
  };
  // Factors of links that are told apart by their item, and what they lack to 3.
  std::vector<float> some(links);
  std::vector<float> rest(links);
  for (uint32_t item = 0; item < links; ++item) {
    some[item] = static_cast<float>(item % 4);
    rest[item] = 3 - some[item];
  }
  const std::vector<float> same(links, 4);
  for (const LinkLoss loss :
       {LinkLoss::kBce, LinkLoss::kBceBalanced, LinkLoss::kBpr, LinkLoss::kSoftmax}) {
    for (const uint32_t negatives : {3U, 0U}) {
      CAPTURE(static_cast<int>(loss));
      CAPTURE(negatives);
      data.use.loss = {loss, 1};
      const Computed plain = computed({}, negatives);
      const Computed alike = computed({same, 0.25}, negatives);
      CHECK(alike.loss == plain.loss);
      CHECK(SameBits(alike.gradient, plain.gradient));
      const Computed one = computed({some, 1}, negatives);
      const Computed other = computed({rest, 1}, negatives);
      CHECK(one.loss != other.loss);
      CHECK(one.loss + other.loss == doctest::Approx(3 * plain.loss));
      double off = 0;
      double size = 0;
      for (size_t i = 0; i < plain.gradient.size(); ++i) {
        const double sum = double{one.gradient[i]} + double{other.gradient[i]};
        off = std::max(off, std::abs(sum - 3 * double{plain.gradient[i]}));
        size = std::max(size, std::abs(3 * double{plain.gradient[i]}));
      }
      CHECK(size > 0);
      CHECK(off < 1e-4 * size);
    }
  }
}

TEST_CASE("a learnt model ranks links above what their sources are not linked with") {
  LinkData data(400, 12, true, 3);
  data.use.count = 100;
  Loop loop(data.Options(ModelType::kGraphSage, LinkHead::kDot));
  const auto mrr = [&] {
    const auto whole = test::EvaluateNodes(
        loop.work(), EvalNodes::kTest, {loop.step(), 0, loop.parameters()}, [] { return true; });
    REQUIRE(whole.ok());
    return loop.work().Judge(*whole, {}).metrics[static_cast<size_t>(Metric::kMrr)];
  };
  const double before = mrr();
  for (uint32_t batch = 0; batch < 80; ++batch) {
    loop.Step(BatchOf(data, ModelType::kGraphSage, batch, 4).view());
  }
  CHECK(mrr() > 1.3 * before);
}

TEST_CASE("the number of threads decides no bit of a model of links") {
  const LinkData data(1500, 12, false, 5);
  for (const LinkHead head : kHeads) {
    CAPTURE(static_cast<int>(head));
    std::vector<float> alone;
    for (const uint32_t threads : {1U, 2U, 5U}) {
      TrainOptions options = data.Options(ModelType::kGcn, head);
      options.threads = threads;
      Loop loop(options);
      uint32_t number = 0;
      for (const uint32_t negatives : NegativesOf(head)) {
        loop.Step(BatchOf(data, ModelType::kGcn, number++, negatives).view());
      }
      if (threads == 1) alone = loop.parameters();
      CHECK(SameBits(loop.parameters(), alone));
    }
  }
}

TEST_CASE("a device learns links with the processor's bits") {
  const LinkData data(900, 12, true, 7);
  const test::SimPlugin plugin(test::SimPlugin::Environment{});
  const auto device = plugin.Open();
  for (const LinkHead head : kHeads) {
    CAPTURE(static_cast<int>(head));
    const TrainOptions here = data.Options(ModelType::kGraphSage, head);
    TrainOptions there = here;
    there.device.device = device.get();
    Loop cpu(here);
    Loop on_device(there);
    uint32_t number = 0;
    for (const uint32_t negatives : NegativesOf(head)) {
      const LinkBatch batch = BatchOf(data, ModelType::kGraphSage, number++, negatives);
      const BatchReport expected = cpu.Step(batch.view());
      const BatchReport report = on_device.Step(batch.view());
      CHECK(Agree(on_device.gradient(), cpu.gradient(), 1e-4));
      if (HasProcessorsProducts()) CHECK(report.sums.loss == expected.sums.loss);
      Rejoin(&on_device, cpu);
    }
    const auto evaluated = [](Loop* loop) {
      return test::EvaluateNodes(loop->work(), EvalNodes::kValidation,
                                 {loop->step(), 0, loop->parameters()}, [] { return true; });
    };
    const auto of_device = evaluated(&on_device);
    const auto of_cpu = evaluated(&cpu);
    REQUIRE(of_device.ok());
    REQUIRE(of_cpu.ok());
    if (!HasProcessorsProducts()) continue;
    CHECK(of_device->counts == of_cpu->counts);
    CHECK(of_device->sums.loss == of_cpu->sums.loss);
  }
}

TEST_CASE("a record without pairs is not of a job of links") {
  const LinkData data(100, 12, true, 7);
  Loop loop(data.Options(ModelType::kGraphSage, LinkHead::kDot));
  const test::TestRecord record(data.graph, {{17, 0, 0}, {1, 2, 3}, {2, 2}, false});
  ExtractReport report;
  CHECK(loop.work().Extract(record.view(), 0, &report).code() == Code::kShmCorrupted);
}

}  // namespace gnnd
