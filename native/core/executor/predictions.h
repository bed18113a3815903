#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/npy.h"

namespace gnnd {

// What a model's outputs predict of a node, which is the task's to say (train/tasks/task.h).
class PredictionRule {
 public:
  virtual ~PredictionRule() = default;

  // Elements of predictions.npy, and whether a node has one for each output, else one in all.
  virtual NpyType predicted_type() const = 0;
  virtual bool predicts_columns() const = 0;
  // Appends what a row of outputs predicts.
  virtual void Predict(std::span<const float> outputs, std::vector<std::byte>* to) const = 0;
  // Probabilities of a row of outputs, in double precision on the way.
  virtual void Probabilities(std::span<const float> outputs, std::span<float> shares) const = 0;
};

// What a model with so many outputs predicts of nodes, as predictions.npy holds it.
class Predictions {
 public:
  // Borrows the rule.
  Predictions(const PredictionRule& rule, uint32_t outputs) : rule_(&rule), outputs_(outputs) {}

  const PredictionRule& rule() const { return *rule_; }
  uint32_t outputs() const { return outputs_; }
  std::vector<uint64_t> ShapeOf(uint64_t nodes) const;
  uint64_t bytes_per_node() const;
  // Appends those of whole rows of outputs.
  void Append(std::span<const float> outputs, std::vector<std::byte>* to) const;

 private:
  const PredictionRule* rule_;
  uint32_t outputs_;
};

// Appends the bytes of one element.
template <typename T>
void AppendElement(T value, std::vector<std::byte>* to) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  to->insert(to->end(), bytes.begin(), bytes.end());
}

}  // namespace gnnd
