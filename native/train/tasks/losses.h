#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/base/status.h"
#include "core/executor/train_work.h"
#include "train/ops/workspace.h"
#include "train/tasks/node_targets.h"

namespace gnnd {

// The input of a batch's loss.
struct LossInput {
  const NodeTargets& targets;        // task, width and weights
  const TargetRows& rows;            // the batch's targets, in the host's memory
  const uint32_t* labels = nullptr;  // rows.labels on the device of the logits
};

// Writes the loss of `logits`, [seeds, width] on the workspace's device, to `report`, and its
// gradient to `grad` (like logits). kNumericDivergence when the loss is not finite.
Status ComputeLoss(const LossInput& input, const at::Tensor& logits, const at::Tensor& grad,
                   Workspace* workspace, BatchReport* report);

}  // namespace gnnd
