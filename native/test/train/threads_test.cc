#include <doctest/doctest.h>

#include <vector>

#include "partition.h"
#include "test/support/block_types.h"
#include "test/support/record_builder.h"
#include "training_loop.h"

namespace gnnd {
namespace {

using test::EvalReport;
using test::Loop;
using test::Partition;
using test::SameBits;
using test::TestRecord;

// The results of training and evaluating the same batches.
struct Outcome {
  std::vector<float> gradient;
  std::vector<float> parameters;
  double loss = 0;
  double val_loss = 0;
  uint64_t test_correct = 0;
};

Outcome OutcomeOf(const Partition& data, TrainOptions options, uint32_t threads) {
  options.threads = threads;
  Loop loop(options);
  BatchReport report;
  for (uint32_t batch = 0; batch < 3; ++batch) {
    const std::vector<int32_t> fanouts =
        batch == 1 ? std::vector<int32_t>{-1, 9} : std::vector<int32_t>{3, 1};
    report = loop.Step(TestRecord(
        data.graph, {{17, 0, batch}, data.train, fanouts, options.model.type == ModelType::kGcn}));
  }
  const EvalReport eval = loop.Evaluate();
  return {loop.gradient(), loop.parameters(), report.sums.loss, eval.val_loss_sum,
          eval.test_correct};
}

TEST_CASE("the number of threads decides no bit of our models") {
  const Partition data(3000, 4, 33, 6);
  for (const ModelType type : test::BlockTypes()) {
    for (const Normalization normalization : {Normalization::kNone, Normalization::kLayer}) {
      for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
        if (KindOf(type).has_unit_rows && normalization == Normalization::kLayer) continue;
        INFO("model ", static_cast<int>(type), " normalization ", static_cast<int>(normalization),
             " precision ", static_cast<int>(precision));
        TrainOptions options = data.Options(type);
        options.model.hidden_dim = 144;
        options.model.heads = IsAttention(type) ? 2 : 1;
        options.model.dropout = 0.3F;
        options.model.normalization = normalization;
        options.precision = precision;
        const Outcome alone = OutcomeOf(data, options, 1);
        for (const uint32_t threads : {2U, 3U, 7U}) {
          CAPTURE(threads);
          const Outcome together = OutcomeOf(data, options, threads);
          CHECK(SameBits(together.gradient, alone.gradient));
          CHECK(SameBits(together.parameters, alone.parameters));
          CHECK(together.loss == alone.loss);
          CHECK(together.val_loss == alone.val_loss);
          CHECK(together.test_correct == alone.test_correct);
        }
      }
    }
  }
}

}  // namespace
}  // namespace gnnd
