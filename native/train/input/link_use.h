#pragma once

#include <cstdint>
#include <span>

#include "core/base/status.h"
#include "core/item/link_choices.h"
#include "core/kernels/link_loss.h"
#include "core/metric/metric.h"

namespace gnnd {

// Links that are evaluated, in borrowed memory.
struct LinkSet {
  std::span<const uint32_t> ends{};       // [links, 2]: source and destination
  std::span<const uint32_t> negatives{};  // [links, k]: the dataset's destinations, or none

  uint64_t size() const { return ends.size() / 2; }
  uint32_t source(uint64_t link) const { return ends[2 * link]; }
  uint32_t destination(uint64_t link) const { return ends[2 * link + 1]; }
};

// What a Trainer of links computes, beside what records tell it and the model's head.
struct LinkUse {
  LinkLossOptions loss;
  bool symmetric = false;  // the graph stores each edge in both directions

  EvaluationNegatives negatives = EvaluationNegatives::kKeyed;
  uint32_t count = 1000;          // negatives of each link; read for kKeyed only
  LinkSet sets[2];                // by EvalNodes
  Metric decides = Metric::kMrr;  // the metric by which parameters are compared
  bool ranks = false;             // whether scores are kept, for areas under curves

  // kInvalidArgument, or kDatasetCorrupt for a node beyond `num_nodes`.
  Status Check(uint64_t num_nodes) const;
};

}  // namespace gnnd
