#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/status.h"
#include "core/table/edge_sorter.h"
#include "core/table/text_rows.h"

namespace gnnd {

// How the columns of a text are edges: two of WHOLE or ID, and of edges with weights a WEIGHT.
struct EdgeForm {
  bool target_first = false;
  uint64_t lines_before = 0;  // of parts that were read before
  uint64_t entries_max = 0;   // held by the sorter, until they become a run
};

// Reads the rows that end in the next piece of a text, and adds them to a sorter (`taken`) where
// all of them are plain; else they come back as TextRows reads them. `broken` also where an end is
// no node. Errors are those of the sorter's file.
Result<TextBatch> ReadEdgeText(TextRows* rows, std::string_view piece, bool is_last,
                               const EdgeForm& form, EdgeSorter* sorter);

}  // namespace gnnd
