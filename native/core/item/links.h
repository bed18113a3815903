#pragma once

#include <algorithm>
#include <cstdint>

#include "core/item/link_choices.h"

// A job of links: its items are pairs (source, destination) of training links, numbered as
// links_train.npy lists them, by (destination, source). A batch's seeds are both ends of its pairs
// and their negatives, each node once.

namespace gnnd {

// What decides the seeds and pairs of such a job's batches, beside the batch key and the graph.
struct LinkOptions {
  uint32_t count = 0;  // training links; 0: the job's items are nodes, and nothing else is read
  NegativeMethod method = NegativeMethod::kUniform;
  uint32_t negatives = 1;  // per pair; not read for kInBatch
  KnownLinks known = KnownLinks::kAllow;
  LinkExclusion exclude = LinkExclusion::kBatch;
  bool symmetric = false;  // the graph stores each edge in both directions
  // The links are a list of the dataset's own, which need not be edges of the graph.
  bool given = false;

  bool on() const { return count > 0; }
  // Negatives that a pair has in a batch of `pairs`.
  uint32_t PerPair(uint32_t pairs) const {
    return method == NegativeMethod::kInBatch ? pairs : negatives;
  }
  // Most seeds of a batch of `pairs`: joint negatives are one list, as long as the batch.
  uint64_t MaxSeeds(uint32_t pairs) const {
    switch (method) {
      case NegativeMethod::kUniform:
      case NegativeMethod::kDegree:
        return uint64_t{pairs} * (2 + uint64_t{negatives});
      case NegativeMethod::kJoint:
        return uint64_t{pairs} * (negatives > 0 ? 3 : 2);
      case NegativeMethod::kInBatch:
        break;
    }
    return uint64_t{pairs} * 2;
  }
};

}  // namespace gnnd
