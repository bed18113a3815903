#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/schema.h"

// A relation's rows in order of time, as samplers in time need them (core/graph/timed_graph.h): the
// edges that a seed sees of a row then follow each other, and two binary searches find them.

namespace gnnd {

// Sorts one row after the other.
class RowTimeSorter {
 public:
  // Writes the row's sources and times by rising time, at equal times by source. `sorted_*` have
  // room for the row and may be the row itself.
  void Sort(std::span<const uint32_t> sources, std::span<const int64_t> times,
            uint32_t* sorted_sources, int64_t* sorted_times);

 private:
  struct Entry {
    int64_t time;
    uint32_t source;
  };
  std::vector<Entry> row_;  // as long as the longest row so far
};

struct TimedRowsOptions {
  std::string folder;  // of the dataset
  Schema schema;
  uint32_t relation = 0;
  // Files of int64 times, in any unit: of each edge in the order of the relation's indices, and of
  // each node of its source type. At least one is named; an edge is there once both times have
  // come, so the later one is its time. An edge or node that was always there has the least int64.
  std::string edge_times;
  std::string source_times;
  std::string output;  // an existing folder
};

// Writes indices.npy (uint32) and times.npy (int64), [num_edges], to the output folder; indptr.npy
// is the dataset's. times.npy comes last, so where it is, both are whole. Memory is bounded by the
// longest row and some MiB. Errors: those of RelationEdges::Open; kInvalidArgument when no times
// are named; kDatasetCorrupt when times have another type or shape; kIo, kDiskFull.
Status WriteTimedRows(const TimedRowsOptions& options);

}  // namespace gnnd
