#include <algorithm>
#include <iterator>
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

  void Begin(const NodeTargets& targets, EvalResult* result) const override {
    result->classes.resize(targets.width);
  }

  void Count(const NodeTargets& targets, uint64_t node, std::span<const float> logits,
             bool with_loss, std::vector<float>*, EvalResult* result) const override {
    const auto label = static_cast<uint32_t>(targets.labels[node]);
    if (with_loss) {
      const double loss = CrossEntropy<float>(logits, label, nullptr);
      const auto& weights = targets.weights;
      result->loss_sum += weights.empty() ? loss : static_cast<double>(weights[label]) * loss;
    }
    const uint32_t predicted = ArgMax(logits);
    ++result->classes[predicted].predicted;
    ++result->classes[label].actual;
    if (predicted != label) return;
    ++result->correct;
    ++result->classes[label].hits;
  }

  // The logarithm of each class's probability: logits of one node alone can be compared, those of
  // two cannot. Of two classes one column says all.
  void Score(const NodeTargets& targets, uint64_t node, std::span<const float> logits,
             EvalResult* result) const override {
    const auto label = static_cast<uint32_t>(targets.labels[node]);
    const auto add = [result](float score, bool positive) {
      result->scores.push_back(score);
      result->outcomes.push_back(positive ? Outcome::kPositive : Outcome::kNegative);
    };
    if (targets.width == 2) return add(logits[1] - logits[0], label == 1);
    const double all = CrossEntropy<float>(logits, 0, nullptr) + static_cast<double>(logits[0]);
    for (uint32_t c = 0; c < targets.width; ++c) {
      add(static_cast<float>(static_cast<double>(logits[c]) - all), c == label);
    }
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
