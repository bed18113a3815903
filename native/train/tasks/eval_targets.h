#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/ledger/segment.h"
#include "train/tasks/node_targets.h"

namespace gnnd {

// Rows that a layer gives.
struct LayerRows {
  uint32_t layer = 0;                 // 0 is the layer nearest the features
  std::span<const uint32_t> nodes{};  // ascending; of models over rows the places of these
  std::span<const float> values{};
};

// Takes rows of layers; anything but Ok ends the computation with it.
using RowsConsumer = std::function<Status(const LayerRows&)>;

// Takes the logits of `nodes`, [nodes.size(), out_dim]; anything but Ok ends the prediction with
// it.
using LogitsConsumer = std::function<Status(std::span<const uint32_t> nodes, const float* logits)>;

inline Status EvaluationAborted() { return Status(Code::kAborted, "evaluation was told to stop"); }

// The nodes of an evaluation, some of which may be named several times.
class EvalTargets {
 public:
  EvalTargets() = default;
  explicit EvalTargets(std::span<const int64_t> nodes);
  // Nodes of an inference, ascending and distinct; they are not counted.
  static EvalTargets Predicted(std::vector<uint32_t> nodes);

  const std::vector<uint32_t>& once() const { return once_; }  // ascending
  uint64_t bytes() const { return (once_.size() + all_.size()) * sizeof(uint32_t); }

  // The index of a target in once().
  uint64_t PlaceOf(uint32_t node) const {
    return static_cast<uint64_t>(std::lower_bound(once_.begin(), once_.end(), node) -
                                 once_.begin());
  }

  // Adds the loss (of validation nodes) and counts of `nodes`, ascending ones of once(), whose
  // logits are [nodes.size(), targets.width], to the result of a chunk of `task`.
  // kNumericDivergence when the loss is not finite.
  Status Count(const EvalTask& task, std::span<const uint32_t> nodes, std::span<const float> logits,
               const NodeTargets& targets, EvalResult* result) const;

 private:
  std::vector<uint32_t> all_;  // ascending
  std::vector<uint32_t> once_;
};

}  // namespace gnnd
