#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <thread>

#include "train/work/compute_side.h"
#include "train/work/row_batches.h"
#include "train/work/work_parts.h"

namespace gnnd {

// Threads that extract for the thread `owner`, which computes on `threads`: copying needs few
// cores, and ahead of it a whole team would take those of the batch that is computed.
inline uint32_t ExtractThreads(std::thread::id owner, uint32_t threads) {
  return std::this_thread::get_id() == owner ? threads : (threads + 3) / 4;
}

// A batch whose rows are in the buffer `number`, as they were brought for `sample`.
struct RowStep {
  const RowInput& input;
  ComputeSide& side;
  RowBatches& batches;
  const Sample& sample;
  uint32_t number;
  uint64_t items;  // of which running values are means
};

// What costs something of a batch, and what it costs.
struct BatchOutputs {
  at::Tensor outputs;  // a contiguous matrix
  ComputeSide::Loss loss;
};

// Runs the model over a batch's rows, forward and back. `outputs_of` takes all parameters in the
// manifest's order and the rows that the last layer gives, contiguous; it must not outlive them.
Status WriteRowGradient(
    const RowStep& step, const ParametersView& parameters,
    const std::function<BatchOutputs(std::span<const at::Tensor>, const at::Tensor&)>& outputs_of,
    std::span<float> gradient, BatchReport* report);

// Makes training on rows of propagated features. Borrows all arguments.
std::unique_ptr<Training> RowTraining(const RowInput& input, ComputeSide* side,
                                      RowBatches* batches);
// The same where items are links. REQUIRES: the options have them.
std::unique_ptr<Training> RowLinkTraining(const RowInput& input, ComputeSide* side,
                                          RowBatches* batches);

}  // namespace gnnd
