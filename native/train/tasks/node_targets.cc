#include "train/tasks/node_targets.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "core/base/check.h"
#include "core/kernels/loss.h"

namespace gnnd {

NodeTargets TargetsOf(const Dataset& dataset) {
  NodeTargets targets;
  targets.task = dataset.counts().task;
  targets.width = static_cast<uint32_t>(dataset.counts().num_classes);
  targets.labels = dataset.labels();
  targets.label_bits = dataset.label_bits();
  targets.values = dataset.targets();
  return targets;
}

uint64_t NodeTargets::rows() const {
  if (task == Task::kClassification) return labels.size();
  const uint64_t count = task == Task::kMultiLabel ? label_bits.size() : values.size();
  return width == 0 ? 0 : count / width;
}

bool NodeTargets::Has(uint64_t node) const {
  if (task == Task::kClassification) {
    return labels[node] >= 0 && static_cast<uint32_t>(labels[node]) < width;
  }
  if (task == Task::kMultiLabel) {
    const auto bits = label_bits.subspan(node * width, width);
    return std::any_of(bits.begin(), bits.end(), [](uint8_t bit) { return bit <= 1; });
  }
  const auto row = values.subspan(node * width, width);
  return std::any_of(row.begin(), row.end(), [](float value) { return !std::isnan(value); });
}

const char* NodeTargets::what() const {
  if (task == Task::kClassification) return "no class of the model";
  return task == Task::kMultiLabel ? "no label that is known" : "no target that is known";
}

void NodeTargets::Read(std::span<const uint32_t> nodes, TargetRows* rows) const {
  if (task == Task::kClassification) {
    rows->labels.resize(nodes.size());
    std::transform(nodes.begin(), nodes.end(), rows->labels.begin(),
                   [this](uint32_t node) { return static_cast<uint32_t>(labels[node]); });
    return;
  }
  rows->values.resize(nodes.size() * width);
  for (size_t i = 0; i < nodes.size(); ++i) ReadValues(nodes[i], rows->values.data() + i * width);
}

void NodeTargets::ReadValues(uint64_t node, float* to) const {
  GNND_CHECK(task != Task::kClassification);
  if (task == Task::kRegression) {
    std::ranges::copy(values.subspan(node * width, width), to);
    return;
  }
  std::ranges::transform(label_bits.subspan(node * width, width), to, [](uint8_t bit) {
    return bit <= 1 ? static_cast<float>(bit) : std::numeric_limits<float>::quiet_NaN();
  });
}

void EvalCount::Add(uint64_t node, std::span<const float> outputs) {
  ++result_->nodes;
  if (targets_.ranked_columns > 0) AddScores(node, outputs);
  if (targets_.task == Task::kClassification) return AddClass(node, outputs);
  known_.resize(targets_.width);
  targets_.ReadValues(node, known_.data());
  if (targets_.task == Task::kMultiLabel) return AddLabels(outputs);
  AddErrors(outputs);
}

// Of labels their logits. Of classes the logarithm of their probability: logits of one node alone
// can be compared, not those of two.
void EvalCount::AddScores(uint64_t node, std::span<const float> logits) {
  std::vector<float>& scores = result_->scores;
  std::vector<Outcome>& outcomes = result_->outcomes;
  const auto add = [&](float score, bool positive) {
    scores.push_back(score);
    outcomes.push_back(positive ? Outcome::kPositive : Outcome::kNegative);
  };
  if (targets_.task == Task::kMultiLabel) {
    scores.insert(scores.end(), logits.begin(), logits.end());
    const auto bits = targets_.label_bits.subspan(node * targets_.width, targets_.width);
    std::ranges::transform(bits, std::back_inserter(outcomes), [](uint8_t bit) {
      return bit <= 1 ? static_cast<Outcome>(bit) : Outcome::kUnknown;
    });
    return;
  }
  const auto label = static_cast<uint32_t>(targets_.labels[node]);
  if (targets_.width == 2) return add(logits[1] - logits[0], label == 1);
  const double all = CrossEntropy<float>(logits, 0, nullptr) + static_cast<double>(logits[0]);
  for (uint32_t c = 0; c < targets_.width; ++c) {
    add(static_cast<float>(static_cast<double>(logits[c]) - all), c == label);
  }
}

void EvalCount::AddClass(uint64_t node, std::span<const float> logits) {
  const auto label = static_cast<uint32_t>(targets_.labels[node]);
  if (with_loss_) {
    const double loss = CrossEntropy<float>(logits, label, nullptr);
    const auto& weights = targets_.weights;
    result_->loss_sum += weights.empty() ? loss : static_cast<double>(weights[label]) * loss;
  }
  const uint32_t predicted = ArgMax(logits);
  ++result_->classes[predicted].predicted;
  ++result_->classes[label].actual;
  if (predicted != label) return;
  ++result_->correct;
  ++result_->classes[label].hits;
}

// A label is predicted where it is the likelier: a logit above 0.
void EvalCount::AddLabels(std::span<const float> logits) {
  if (with_loss_) {
    const float* const weights = targets_.weights.empty() ? nullptr : targets_.weights.data();
    result_->loss_sum += MultiLabelLoss(logits, known_.data(), weights, nullptr);
  }
  for (uint32_t c = 0; c < targets_.width; ++c) {
    if (std::isnan(known_[c])) continue;
    const bool actual = known_[c] > 0.5F;
    const bool predicted = logits[c] > 0.0F;
    ClassCounts& counts = result_->classes[c];
    counts.predicted += predicted ? 1 : 0;
    counts.actual += actual ? 1 : 0;
    counts.hits += predicted && actual ? 1 : 0;
  }
}

void EvalCount::AddErrors(std::span<const float> outputs) {
  if (with_loss_) result_->loss_sum += SquaredErrorLoss(outputs, known_.data(), nullptr);
  for (uint32_t t = 0; t < targets_.width; ++t) {
    if (std::isnan(known_[t])) continue;
    const double error = static_cast<double>(outputs[t]) - static_cast<double>(known_[t]);
    ++result_->values;
    result_->absolute_error += std::abs(error);
    result_->squared_error += error * error;
  }
}

Status EvalCount::Finish() const {
  const EvalResult& result = *result_;
  if (std::isfinite(result.loss_sum) && std::isfinite(result.squared_error)) return Status::Ok();
  return Status(Code::kNumericDivergence, "the validation loss is not finite");
}

std::vector<float> WeightsOf(const ClassWeighting& weighting, const NodeTargets& targets,
                             std::span<const int64_t> train) {
  if (!weighting.balanced) return weighting.weights;
  GNND_CHECK(targets.task != Task::kRegression);
  std::vector<uint64_t> there(targets.width);
  std::vector<uint64_t> known(targets.width);
  for (const int64_t node : train) {
    const auto at = static_cast<uint64_t>(node);
    if (targets.task == Task::kClassification) {
      if (targets.Has(at)) ++there[static_cast<uint32_t>(targets.labels[at])];
      continue;
    }
    for (uint32_t c = 0; c < targets.width; ++c) {
      const uint8_t bit = targets.label_bits[at * targets.width + c];
      known[c] += bit <= 1 ? 1 : 0;
      there[c] += bit == 1 ? 1 : 0;
    }
  }
  // Classes that no training node has take no share: the mean weight of these nodes is 1.
  const auto nodes = static_cast<double>(std::reduce(there.begin(), there.end()));
  const auto present = static_cast<double>(
      std::count_if(there.begin(), there.end(), [](uint64_t count) { return count > 0; }));
  std::vector<float> weights(targets.width, 1.0F);
  for (uint32_t c = 0; c < targets.width; ++c) {
    const bool labels = targets.task == Task::kMultiLabel;
    const auto count = static_cast<double>(there[c]);
    const double share = labels ? static_cast<double>(known[c]) - count : nodes / present;
    if (there[c] > 0 && share > 0) weights[c] = static_cast<float>(share / count);
  }
  return weights;
}

}  // namespace gnnd
