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
  std::unique_ptr<RowReader> tokens;  // all hops; for SGC the last alone
  NpyArray nodes;
  NpyArray labels;      // format by the task; of a model with a head none
  NodeTargets targets;  // targets of the rows
};

// Opens the files that the options' model reads, and checks their sizes. Errors are those of
// OpenRows; also kDatasetCorrupt when a training row has no label of the model.
Result<RowFiles> OpenRowFiles(const RowsOptions& options);

// The files of the tokens that the model reads.
std::vector<std::string> TokenPaths(const RowsOptions& options);

// Number of rows that an evaluation stages at once.
uint64_t StretchRows(const RowsOptions& options);

}  // namespace gnnd
