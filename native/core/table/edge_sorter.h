#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"

// Edges in any order become the rows of a graph, in bounded memory: they are held, then put into
// runs, each by buckets of rows that follow each other; at the end the runs are read bucket after
// bucket, and each bucket is sorted where it fits the processor's cache. Runs that do not fit into
// memory lie in a file without a name.

namespace gnnd {

struct EdgeSorterOptions {
  uint64_t num_nodes = 0;
  bool weighted = false;
  // Rows ascend, each column is there once, and no row has its own number. Else row v holds the
  // sources of v's edges as they were added.
  bool once = true;
  bool both_ways = true;          // an edge stands in the row of its source, too
  std::string folder;             // for what does not fit into memory
  uint64_t entries_max = 0;       // held until they become a run, and given out at once
  uint64_t memory_bytes_max = 0;  // of runs, beyond which they go to the disk
  // Sources have ids of their own, below this, so that no edge is a self-loop and none stands in
  // the row of its source; 0: they are the nodes of the rows.
  uint64_t num_sources = 0;
};

// Edges that were added twice with unequal weights, by their lines.
struct EdgeConflict {
  uint32_t line = 0;
  uint32_t earlier = 0;
};

struct EdgeCounts {
  uint64_t self_loops = 0;  // that were left out
  uint64_t entries = 0;     // of all rows given out so far
  uint64_t repeated = 0;    // entries that were left out because they were there
  uint64_t num_conflicts = 0;
  std::vector<EdgeConflict> conflicts;  // the first ones
};

// Rows that follow each other.
struct EdgeRows {
  std::vector<int64_t> ends;      // where each ends, counted over all rows before
  std::vector<uint32_t> indices;  // [entries]
  std::vector<float> weights;     // [entries], or empty
};

// Edges side by side: [2 * edges] source and target, and of edges with weights [edges] each.
struct EdgeBlock {
  std::span<const uint32_t> ends;
  std::span<const float> weights;
  std::span<const uint32_t> lines;  // what messages call each, counted from `first_line`
  uint32_t first_line = 0;
};

class EdgeSorter {
 public:
  static constexpr size_t kConflictsKept = 20;

  static std::unique_ptr<EdgeSorter> Open(EdgeSorterOptions options);

  virtual ~EdgeSorter() = default;

  // False, and nothing is added, where an end is no node, or a source none of its kind.
  virtual bool Add(const EdgeBlock& block) = 0;
  // Entries that were added and are in no run yet.
  virtual uint64_t NumHeld() const = 0;
  // What is held becomes a run. kIo, kDiskFull: of the file.
  virtual Status Settle() = 0;
  // The next rows, from the first to the last, after the last edge; nothing after the last row.
  // Errors as above.
  virtual Result<std::optional<EdgeRows>> Next() = 0;

  const EdgeCounts& counts() const { return counts_; }

 protected:
  EdgeCounts counts_;
};

}  // namespace gnnd
