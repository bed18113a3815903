#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/sample/times.h"
#include "test/support/reference.h"
#include "test/support/typed_graphs.h"

// The sampler in time once more, written to be read: what TemporalSampler must equal bit for bit.

namespace gnnd {

// A graph with its edges in the order of a dataset, and their times.
struct TimedEdges {
  test::TypedGraph graph;
  std::vector<std::vector<int64_t>> times;  // by relation, empty: it has none
};

struct TimedSeed {
  uint32_t type;
  uint32_t node;
  int64_t time;
};

// `seeds` ascend by type; uniform and most recent draws.
TypedReferenceSample TemporalReference(const TimedEdges& edges, const SamplerOptions& options,
                                       const TimeOptions& times, const BatchKey& key,
                                       std::span<const TimedSeed> seeds);

}  // namespace gnnd
