#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernels/loss.h"
#include "train/tasks/task.h"

namespace gnnd {
namespace {

std::span<const uint8_t> BitsOf(const NodeTargets& targets, uint64_t node) {
  return targets.label_bits.subspan(node * targets.width, targets.width);
}

// A node has any of several labels, and a model a logit for each. Labels that are not known count
// nowhere.
class Labels final : public NodeTask {
 public:
  uint64_t Rows(const NodeTargets& targets) const override {
    return targets.label_bits.size() / targets.width;
  }

  Status Bind(const NpyArray& file, uint64_t rows, NodeTargets* targets) const override {
    GNND_TRY(file.Expect({NpyType::kUint8}, {rows, targets->width}));
    targets->label_bits = file.values<uint8_t>();
    return Status::Ok();
  }

  bool Has(const NodeTargets& targets, uint64_t node) const override {
    return std::ranges::any_of(BitsOf(targets, node), [](uint8_t bit) { return bit <= 1; });
  }
  const char* what() const override { return "no label that is known"; }

  void Read(const NodeTargets& targets, std::span<const uint32_t> nodes,
            TargetRows* rows) const override {
    rows->values.resize(nodes.size() * targets.width);
    float* to = rows->values.data();
    for (const uint32_t node : nodes) {
      ReadNode(targets, node, to);
      to += targets.width;
    }
  }

  // 1 for each label that is the likelier to be there: its output is above 0.
  NpyType predicted_type() const override { return NpyType::kUint8; }
  bool predicts_columns() const override { return true; }
  void Predict(std::span<const float> logits, std::vector<std::byte>* to) const override {
    for (const float logit : logits) AppendElement(static_cast<uint8_t>(logit > 0 ? 1 : 0), to);
  }
  // The sigmoid of each.
  void Probabilities(std::span<const float> logits, std::span<float> shares) const override {
    std::ranges::transform(logits, shares.begin(), [](float logit) {
      return static_cast<float>(1 / (1 + std::exp(-static_cast<double>(logit))));
    });
  }

  void Begin(const NodeTargets& targets, EvalResult* result) const override {
    result->counts.resize(targets.width * kCountsPerClass);
  }

  // A label is predicted where it is the likelier: a logit above 0.
  void Count(const NodeTargets& targets, uint64_t node, std::span<const float> logits,
             bool with_loss, std::vector<float>* known, EvalResult* result) const override {
    known->resize(targets.width);
    ReadNode(targets, node, known->data());
    if (with_loss) {
      const float* const weights = targets.weights.empty() ? nullptr : targets.weights.data();
      result->sums.loss += MultiLabelLoss(logits, known->data(), weights, nullptr);
    }
    const std::span<ClassCounts> labels = ClassesIn(std::span(result->counts));
    for (uint32_t c = 0; c < targets.width; ++c) {
      if (std::isnan((*known)[c])) continue;
      const bool actual = (*known)[c] > 0.5F;
      const bool predicted = logits[c] > 0.0F;
      ClassCounts& counts = labels[c];
      counts.predicted += predicted ? 1 : 0;
      counts.actual += actual ? 1 : 0;
      counts.hits += predicted && actual ? 1 : 0;
    }
  }

  uint64_t ScoresOf(const NodeTargets& targets) const override { return targets.width; }

  void Score(const NodeTargets& targets, uint64_t node, std::span<const float> logits,
             std::span<float> scores, std::span<Outcome> outcomes) const override {
    std::ranges::copy(logits, scores.begin());
    std::ranges::transform(BitsOf(targets, node), outcomes.begin(), [](uint8_t bit) {
      return bit <= 1 ? static_cast<Outcome>(bit) : Outcome::kUnknown;
    });
  }

  Metrics MetricsOf(const EvalResult& whole) const override {
    const std::span<const ClassCounts> labels = ClassesIn(std::span(whole.counts));
    Metrics metrics;
    metrics[Metric::kMicroF1] = F1Of(TotalOf(labels));
    metrics[Metric::kMacroF1] = MacroF1OfLabels(labels);
    return metrics;
  }

  Quality QualityOf(Metric decides, const EvalResult& whole,
                    const Metrics& metrics) const override {
    if (decides == Metric::kMicroF1) return MicroF1Quality(whole);
    return NodeTask::QualityOf(decides, whole, metrics);
  }

  std::vector<float> BalancedWeights(const NodeTargets& targets,
                                     std::span<const int64_t> train) const override {
    std::vector<uint64_t> there(targets.width);
    std::vector<uint64_t> known(targets.width);
    for (const int64_t node : train) {
      const auto bits = BitsOf(targets, static_cast<uint64_t>(node));
      for (uint32_t c = 0; c < targets.width; ++c) {
        known[c] += bits[c] <= 1 ? 1 : 0;
        there[c] += bits[c] == 1 ? 1 : 0;
      }
    }
    std::vector<float> weights(targets.width, 1.0F);
    for (uint32_t c = 0; c < targets.width; ++c) {
      const auto count = static_cast<double>(there[c]);
      const double share = static_cast<double>(known[c]) - count;
      if (there[c] > 0 && share > 0) weights[c] = static_cast<float>(share / count);
    }
    return weights;
  }

 private:
  static void ReadNode(const NodeTargets& targets, uint64_t node, float* to) {
    std::ranges::transform(BitsOf(targets, node), to, [](uint8_t bit) {
      return bit <= 1 ? static_cast<float>(bit) : std::numeric_limits<float>::quiet_NaN();
    });
  }
};

}  // namespace

const NodeTask& LabelsOfNodes() {
  static const Labels task;
  return task;
}

}  // namespace gnnd
