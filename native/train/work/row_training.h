#pragma once

#include <cstdint>
#include <memory>
#include <thread>

#include "train/work/row_batches.h"
#include "train/work/work_parts.h"

namespace gnnd {

// Threads that extract for the thread `owner`, which computes on `threads`: copying needs few
// cores, and ahead of it a whole team would take those of the batch that is computed.
inline uint32_t ExtractThreads(std::thread::id owner, uint32_t threads) {
  return std::this_thread::get_id() == owner ? threads : (threads + 3) / 4;
}

// Makes training on rows of propagated features. Borrows all arguments.
std::unique_ptr<Training> RowTraining(const RowInput& input, ComputeSide* side,
                                      RowBatches* batches);
// The same where items are links. REQUIRES: the options have them.
std::unique_ptr<Training> RowLinkTraining(const RowInput& input, ComputeSide* side,
                                          RowBatches* batches);

}  // namespace gnnd
