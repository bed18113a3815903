#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/kernels/loss.h"
#include "train/tasks/task.h"

namespace gnnd {
namespace {

// A node has one class, and a model a logit for each.
class Classes final : public NodeTask {
 public:
  uint64_t Rows(const NodeTargets& targets) const override { return targets.labels.size(); }

  Status Bind(const NpyArray& file, uint64_t rows, NodeTargets* targets) const override {
    GNND_TRY(file.Expect({NpyType::kInt32}, {rows}));
    targets->labels = file.values<int32_t>();
    return Status::Ok();
  }

  bool Has(const NodeTargets& targets, uint64_t node) const override {
    return targets.labels[node] >= 0 && static_cast<uint32_t>(targets.labels[node]) < targets.width;
  }
  const char* what() const override { return "no class of the model"; }

  void Read(const NodeTargets& targets, std::span<const uint32_t> nodes,
            TargetRows* rows) const override {
    rows->labels.resize(nodes.size());
    std::ranges::transform(nodes, rows->labels.begin(), [&targets](uint32_t node) {
      return static_cast<uint32_t>(targets.labels[node]);
    });
  }

  // The class of the largest output, the first of equals.
  NpyType predicted_type() const override { return NpyType::kInt64; }
  bool predicts_columns() const override { return false; }
  void Predict(std::span<const float> logits, std::vector<std::byte>* to) const override {
    AppendElement(static_cast<int64_t>(ArgMax(logits)), to);
  }
  // Softmax.
  void Probabilities(std::span<const float> logits, std::span<float> shares) const override {
    const double largest = *std::ranges::max_element(logits);
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit - largest);
    for (size_t c = 0; c < logits.size(); ++c) {
      shares[c] = static_cast<float>(std::exp(logits[c] - largest) / sum);
    }
  }

  void Begin(const NodeTargets& targets, EvalResult* result) const override {
    result->counts.resize(targets.width * kCountsPerClass);
  }

  void Count(const NodeTargets& targets, uint64_t node, std::span<const float> logits,
             bool with_loss, std::vector<float>*, EvalResult* result) const override {
    const auto label = static_cast<uint32_t>(targets.labels[node]);
    if (with_loss) {
      const double loss = CrossEntropy<float>(logits, label, nullptr);
      const auto& weights = targets.weights;
      result->sums.loss += weights.empty() ? loss : static_cast<double>(weights[label]) * loss;
    }
    const uint32_t predicted = ArgMax(logits);
    const std::span<ClassCounts> classes = ClassesIn(std::span(result->counts));
    ++classes[predicted].predicted;
    ++classes[label].actual;
    if (predicted != label) return;
    ++result->sums.counts[kCorrect];
    ++classes[label].hits;
  }

  // With two classes one score says all.
  uint64_t ScoresOf(const NodeTargets& targets) const override {
    return targets.width == 2 ? 1 : targets.width;
  }

  // The logarithm of each class's probability: logits of one node alone can be compared, those of
  // two cannot.
  void Score(const NodeTargets& targets, uint64_t node, std::span<const float> logits,
             std::span<float> scores, std::span<Outcome> outcomes) const override {
    const auto label = static_cast<uint32_t>(targets.labels[node]);
    const auto put = [&](size_t column, float score, bool positive) {
      scores[column] = score;
      outcomes[column] = positive ? Outcome::kPositive : Outcome::kNegative;
    };
    if (targets.width == 2) return put(0, logits[1] - logits[0], label == 1);
    const double all = CrossEntropy<float>(logits, 0, nullptr) + static_cast<double>(logits[0]);
    for (uint32_t c = 0; c < targets.width; ++c) {
      put(c, static_cast<float>(static_cast<double>(logits[c]) - all), c == label);
    }
  }

  Metrics MetricsOf(const EvalResult& whole) const override {
    const std::span<const ClassCounts> classes = ClassesIn(std::span(whole.counts));
    Metrics metrics;
    metrics[Metric::kAccuracy] = ShareOf(whole.sums.counts[kCorrect], whole.sums.items);
    metrics[Metric::kMicroF1] = F1Of(TotalOf(classes));
    metrics[Metric::kMacroF1] = MacroF1OfClasses(classes);
    return metrics;
  }

  Quality QualityOf(Metric decides, const EvalResult& whole,
                    const Metrics& metrics) const override {
    if (decides == Metric::kMicroF1) return MicroF1Quality(whole);
    if (decides != Metric::kAccuracy) return NodeTask::QualityOf(decides, whole, metrics);
    return {static_cast<double>(whole.sums.counts[kCorrect]),
            static_cast<double>(whole.sums.items)};
  }

  // Classes that no training node has take no share: the mean weight of these nodes is 1.
  std::vector<float> BalancedWeights(const NodeTargets& targets,
                                     std::span<const int64_t> train) const override {
    std::vector<uint64_t> there(targets.width);
    for (const int64_t node : train) {
      const auto at = static_cast<uint64_t>(node);
      if (Has(targets, at)) ++there[static_cast<uint32_t>(targets.labels[at])];
    }
    const auto nodes = static_cast<double>(std::reduce(there.begin(), there.end()));
    const auto present =
        static_cast<double>(std::ranges::count_if(there, [](uint64_t count) { return count > 0; }));
    std::vector<float> weights(targets.width, 1.0F);
    for (uint32_t c = 0; c < targets.width; ++c) {
      if (there[c] == 0) continue;
      weights[c] = static_cast<float>(nodes / present / static_cast<double>(there[c]));
    }
    return weights;
  }
};

}  // namespace

const NodeTask& ClassesOfNodes() {
  static const Classes task;
  return task;
}

}  // namespace gnnd
