#pragma once

#include <memory>

#include "core/base/status.h"
#include "core/feature/row_reader.h"

namespace gnnd {

// Opens a reader for the tier in `options`. Errors are those of NpyArray::Open; kDatasetCorrupt
// when a file is not a matrix of the expected shape, or has no row type.
Result<std::unique_ptr<RowReader>> OpenRows(const RowReaderOptions& options);

}  // namespace gnnd
