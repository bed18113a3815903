#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>

#include "core/batch/sample.h"
#include "core/executor/train_work.h"
#include "train/input/extraction.h"
#include "train/layers/layer.h"
#include "train/ops/workspace.h"

namespace gnnd {

// What is learnt from batches of blocks: what is known of a batch's items, what its outputs are,
// and what they cost. Used by the thread that extracts (Read) and by the one that computes.
class BlockTask {
 public:
  virtual ~BlockTask() = default;

  // Reads what is known of the sample's items to the buffer. kShmCorrupted if the sample is not of
  // this task; kDatasetCorrupt if nothing is known of an item.
  virtual Status Read(const Sample& sample, ExtractBuffer* buffer) const = 0;

  // A batch's record, the model's parameters, and memory of the place that computes.
  struct Batch {
    const Sample& sample;
    std::span<const at::Tensor> parameters;
    Workspace* workspace;
  };
  // The outputs that cost something, a matrix, from the seeds' rows that the last layer gives.
  virtual at::Tensor Outputs(const Batch& batch, const at::Tensor& rows) const = 0;

  struct Known {
    const Sample& sample;
    const ExtractBuffer& extracted;
    Workspace* workspace;
  };
  // Writes the loss of contiguous outputs to `report`, and its gradient to `grad`, like them.
  // kNumericDivergence when the loss is not finite.
  virtual Status Loss(const Known& known, const at::Tensor& outputs, const at::Tensor& grad,
                      BatchReport* report) const = 0;
};

// Learns what is known of seeds. Borrows the targets.
std::unique_ptr<BlockTask> NodesOfBlocks(const NodeTargets& targets);
// Learns which seeds belong together, by the head of the model. Borrows both.
std::unique_ptr<BlockTask> LinksOfBlocks(const Model& model, const LinkUse& use);

}  // namespace gnnd
