#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/topology_view.h"

namespace gnnd {

// A graph whose edges have times. Borrows its memory. Rows list neighbours in order of time
// (core/prepare/timed_rows.h), so that the edges which a seed sees of a row follow each other.
struct TimedGraph {
  GraphView graph;
  // By relation: the time of each entry of its indices, never falling within a row. Empty: the
  // relation's edges have no times, and every seed sees all of them.
  std::vector<std::span<const int64_t>> times;
};

}  // namespace gnnd
