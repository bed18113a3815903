#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>

#include "core/batch/sample.h"
#include "core/executor/train_work.h"
#include "train/input/link_use.h"
#include "train/layers/model.h"
#include "train/ops/workspace.h"

namespace gnnd {

// The pairs of a batch, all parameters in the manifest's order, and the rows [rows, out_dim] that
// the last layer gives, which pairs name.
struct PairRows {
  const PairsView& pairs;
  std::span<const at::Tensor> parameters;
  const at::Tensor& rows;
};

// Outputs, contiguous, and the place of their gradient, which is like them.
struct PairOutputs {
  const at::Tensor& outputs;
  const at::Tensor& grad;
  Workspace* workspace;
};

// What is learnt of pairs of nodes, whatever made their rows: outputs, and what they cost.
class PairTask {
 public:
  virtual ~PairTask() = default;

  // The outputs that cost something, a matrix with a row for each pair.
  virtual at::Tensor Outputs(const PairRows& given, Workspace* workspace) const = 0;
  // Writes their loss to `report`, and its gradient. kNumericDivergence when it is not finite.
  virtual Status Loss(const PairsView& pairs, const PairOutputs& of, BatchReport* report) const = 0;
};

// Learns which nodes belong together, or what is known of links, by the head of the model. Borrows
// both.
std::unique_ptr<PairTask> TaskOfPairs(const Model& model, const LinkUse& use);

}  // namespace gnnd
