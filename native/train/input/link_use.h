#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/graph/topology_view.h"
#include "core/item/link_choices.h"
#include "core/kernels/link_loss.h"
#include "core/metric/metric.h"
#include "train/tasks/node_targets.h"

namespace gnnd {

// Links that are evaluated, in borrowed memory.
struct LinkSet {
  std::span<const uint32_t> ends{};  // [links, 2]: source and destination
  // [links, k]: the dataset's destinations; or [pairs, 2]: a pool of its pairs; or none.
  std::span<const uint32_t> negatives{};

  uint64_t size() const { return ends.size() / 2; }
  uint32_t source(uint64_t link) const { return ends[2 * link]; }
  uint32_t destination(uint64_t link) const { return ends[2 * link + 1]; }
};

// What is known of links beside that they are some, as a task of nodes has it.
struct LinkLabels {
  NodeTargets train;         // of training links, by item
  NodeTargets evaluated[2];  // by EvalNodes
};

// What an inference asks the head of a model of links.
enum class LinkAsks : uint32_t { kNothing, kScores, kNearest };

struct LinkQuestion {
  LinkAsks asks = LinkAsks::kNothing;
  std::span<const uint32_t> pairs{};  // kScores: [pairs, 2]: source and destination
  // kNearest: of each node the `k` nodes that its links would have the highest scores with.
  uint32_t k = 0;
  std::span<const uint32_t> among{};  // the nodes that these are of, ascending; empty: all
  bool with_known = false;            // whether nodes that it is linked to already are among them
  std::vector<LinkSet> known{};       // links that are known beside the edges of the graph

  // kInvalidArgument, or kDatasetCorrupt for a node beyond `num_nodes`.
  Status Check(uint64_t num_nodes) const;
};

// A graph along whose edges messages come when test links are scored. Borrows its memory.
struct TestMessages {
  TopologyView topology;                  // with all nodes of the graph of batches
  std::span<const float> edge_weights{};  // [num_edges] or empty
};

// What training links count beside each other: links by item, none or one for each. Borrowed.
struct LinkWeights {
  std::span<const float> of{};
  double scale = 1;  // factor of each, by which their mean over all links is 1

  double At(uint32_t item) const { return of.empty() ? 1 : scale * static_cast<double>(of[item]); }
};

// What a Trainer of links computes, beside what records tell it and the model's head.
struct LinkUse {
  LinkLossOptions loss;
  LinkWeights weights{};
  bool symmetric = false;  // the graph stores each edge in both directions

  EvaluationNegatives negatives = EvaluationNegatives::kKeyed;
  uint32_t count = 1000;                      // negatives of each link; read for kKeyed only
  LinkSet sets[2];                            // by EvalNodes
  std::optional<TestMessages> test_messages;  // none: the graph of batches
  Metric decides = Metric::kMrr;              // the metric by which parameters are compared
  bool ranks = false;  // whether scores are kept, for areas under curves and what a pool decides

  // Null: it is learnt which pairs are links. Borrowed; no negatives are read then.
  const LinkLabels* labels = nullptr;

  LinkQuestion question;  // of an inference

  // kInvalidArgument, or kDatasetCorrupt for a node beyond `num_nodes`.
  Status Check(uint64_t num_nodes) const;
};

}  // namespace gnnd
