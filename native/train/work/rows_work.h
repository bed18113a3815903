#pragma once

#include <memory>

#include "core/base/status.h"
#include "train/input/rows_options.h"
#include "train/work/torch_work.h"

namespace gnnd {

// A Trainer's arithmetic on rows of propagated features. Samples are of kind kRows: their key alone
// says which rows. kInvalidArgument when options contradict each other,
// kDatasetCorrupt when files do not fit them or a row has no label of the model; what
// DeviceRows::Create answers.
Result<std::unique_ptr<TorchWork>> CreateRowsWork(const RowsOptions& options);

}  // namespace gnnd
