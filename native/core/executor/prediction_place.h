#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/dataset.h"

// Where an inference writes what of its nodes.

namespace gnnd {

enum class OutputKind : uint32_t { kPredictions, kLogits, kProbabilities, kEmbeddings };

// One file of an inference, made of the rows that a layer gives.
struct OutputChoice {
  OutputKind kind = OutputKind::kPredictions;
  uint32_t layer = 0;  // 0 is the layer nearest the features; of all but embeddings the last
};

struct PredictionPlace {
  std::string folder;  // exists, and out/ in it; empty: nothing is predicted
  std::vector<OutputChoice> outputs{};
  Task task = Task::kClassification;  // of the model
};

}  // namespace gnnd
