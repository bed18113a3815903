#pragma once

#include <memory>

#include "core/base/status.h"
#include "core/feature/row_reader.h"

namespace gnnd {

// A reader of the options' tier. Errors are those of NpyArray::Open; kDatasetCorrupt when a file is
// not a matrix of the expected shape, or not one of a row type.
Result<std::unique_ptr<RowReader>> OpenRows(const RowReaderOptions& options);

}  // namespace gnnd
