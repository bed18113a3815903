#pragma once

#include <memory>

#include "train/work/row_batches.h"
#include "train/work/work_parts.h"

namespace gnnd {

// Makes training on rows of propagated features. Borrows all arguments.
std::unique_ptr<Training> RowTraining(const RowInput& input, ComputeSide* side,
                                      RowBatches* batches);

}  // namespace gnnd
