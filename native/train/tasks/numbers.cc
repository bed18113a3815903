#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/kernels/loss.h"
#include "train/tasks/task.h"

namespace gnnd {
namespace {

// Places in a chunk's counts, of known targets, and in its totals, of errors summed over them.
constexpr size_t kValues = 1;
constexpr size_t kAbsoluteError = 0;
constexpr size_t kSquaredError = 1;

std::span<const float> ValuesOf(const NodeTargets& targets, uint64_t node) {
  return targets.values.subspan(node * targets.width, targets.width);
}

// A node has one or more numbers, some of which may not be known, and a model an output for each.
class Numbers final : public NodeTask {
 public:
  uint64_t Rows(const NodeTargets& targets) const override {
    return targets.values.size() / targets.width;
  }

  Status Bind(const NpyArray& file, uint64_t rows, NodeTargets* targets) const override {
    GNND_TRY(file.Expect({NpyType::kFloat32}, {rows, targets->width}));
    targets->values = file.values<float>();
    return Status::Ok();
  }

  bool Has(const NodeTargets& targets, uint64_t node) const override {
    return std::ranges::any_of(ValuesOf(targets, node),
                               [](float value) { return !std::isnan(value); });
  }
  const char* what() const override { return "no target that is known"; }

  void Read(const NodeTargets& targets, std::span<const uint32_t> nodes,
            TargetRows* rows) const override {
    rows->values.resize(nodes.size() * targets.width);
    auto to = rows->values.begin();
    for (const uint32_t node : nodes) to = std::ranges::copy(ValuesOf(targets, node), to).out;
  }

  // The outputs themselves.
  NpyType predicted_type() const override { return NpyType::kFloat32; }
  bool predicts_columns() const override { return true; }
  void Predict(std::span<const float> outputs, std::vector<std::byte>* to) const override {
    for (const float output : outputs) AppendElement(output, to);
  }
  void Probabilities(std::span<const float>, std::span<float>) const override {
    GNND_CHECK(false);  // the spec's rules refuse them
  }

  void Begin(const NodeTargets&, EvalResult*) const override {}

  void Count(const NodeTargets& targets, uint64_t node, std::span<const float> outputs,
             bool with_loss, std::vector<float>*, EvalResult* result) const override {
    const std::span<const float> known = ValuesOf(targets, node);
    if (with_loss) result->sums.loss += SquaredErrorLoss(outputs, known.data(), nullptr);
    for (uint32_t t = 0; t < targets.width; ++t) {
      if (std::isnan(known[t])) continue;
      const double error = static_cast<double>(outputs[t]) - static_cast<double>(known[t]);
      ++result->sums.counts[kValues];
      result->sums.totals[kAbsoluteError] += std::abs(error);
      result->sums.totals[kSquaredError] += error * error;
    }
  }

  uint64_t ScoresOf(const NodeTargets&) const override { return 0; }

  void Score(const NodeTargets&, uint64_t, std::span<const float>, std::span<float>,
             std::span<Outcome>) const override {
    GNND_CHECK(false);  // numbers are not ranked
  }

  Metrics MetricsOf(const EvalResult& whole) const override {
    const auto values = static_cast<double>(whole.sums.counts[kValues]);
    Metrics metrics;
    metrics[Metric::kMae] = whole.sums.totals[kAbsoluteError] / values;
    metrics[Metric::kRmse] = std::sqrt(whole.sums.totals[kSquaredError] / values);
    return metrics;
  }

  Quality QualityOf(Metric decides, const EvalResult& whole,
                    const Metrics& metrics) const override {
    if (decides != Metric::kMae) return NodeTask::QualityOf(decides, whole, metrics);
    return {-whole.sums.totals[kAbsoluteError], static_cast<double>(whole.sums.counts[kValues])};
  }

  std::vector<float> BalancedWeights(const NodeTargets&, std::span<const int64_t>) const override {
    GNND_CHECK(false);  // the spec's rules refuse it
    return {};
  }
};

}  // namespace

const NodeTask& NumbersOfNodes() {
  static const Numbers task;
  return task;
}

}  // namespace gnnd
