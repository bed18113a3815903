#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/feature/row_reader.h"
#include "core/graph/npy.h"
#include "core/model/row_manifest.h"
#include "train/input/rows_options.h"

namespace gnnd {

// The files of a propagation (docs/formats/propagation.md).
struct RowFiles {
  std::unique_ptr<RowReader> tokens;  // of all hops; of SGC the last alone
  NpyArray nodes;
  NpyArray labels;      // by the task
  NodeTargets targets;  // of its rows
};

// Those that the options' model reads, checked against its sizes. Errors are those of
// OpenRows; kDatasetCorrupt, too, when a row that is trained on has no label of the model.
Result<RowFiles> OpenRowFiles(const RowsOptions& options);

// The files of the tokens that the model reads.
std::vector<std::string> TokenPaths(const RowsOptions& options);

// Rows of an evaluation that are staged at once.
uint64_t StretchRows(const RowsOptions& options);

}  // namespace gnnd
