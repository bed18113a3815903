#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/dataset.h"
#include "core/graph/npy.h"

namespace gnnd {

// What a model with these outputs predicts of nodes, as predictions.npy holds it: the class of the
// largest output, the first of equals (int64 [nodes]); the labels whose output is above 0 (uint8
// [nodes, outputs], 0 or 1); the outputs themselves (float32 [nodes, outputs]).
class Predictions {
 public:
  Predictions() = default;
  Predictions(Task task, uint32_t outputs) : task_(task), outputs_(outputs) {}

  NpyType type() const;
  std::vector<uint64_t> ShapeOf(uint64_t nodes) const;
  uint64_t bytes_per_node() const;
  // Of whole rows of outputs, behind what is there.
  void Append(std::span<const float> outputs, std::vector<std::byte>* to) const;

 private:
  Task task_ = Task::kClassification;
  uint32_t outputs_ = 0;
};

}  // namespace gnnd
