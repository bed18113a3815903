#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/kernels/loss.h"
#include "train/tasks/task.h"

namespace gnnd {
namespace {

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

  void Begin(const NodeTargets&, EvalResult*) const override {}

  void Count(const NodeTargets& targets, uint64_t node, std::span<const float> outputs,
             bool with_loss, std::vector<float>*, EvalResult* result) const override {
    const std::span<const float> known = ValuesOf(targets, node);
    if (with_loss) result->loss_sum += SquaredErrorLoss(outputs, known.data(), nullptr);
    for (uint32_t t = 0; t < targets.width; ++t) {
      if (std::isnan(known[t])) continue;
      const double error = static_cast<double>(outputs[t]) - static_cast<double>(known[t]);
      ++result->values;
      result->absolute_error += std::abs(error);
      result->squared_error += error * error;
    }
  }

  void Score(const NodeTargets&, uint64_t, std::span<const float>, EvalResult*) const override {
    GNND_CHECK(false);  // numbers are not ranked
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
