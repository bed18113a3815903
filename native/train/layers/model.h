#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>

#include "core/batch/sample.h"
#include "train/layers/history.h"
#include "train/layers/layer.h"
#include "train/ops/workspace.h"

// The models over blocks. Layer 0 is nearest the input features and consumes the sample's last
// block; the last layer consumes block 0 and gives the seeds' logits.

namespace gnnd {

// Is told the rows that each layer gives in an evaluation, from layer 0 on; the first are the
// seeds'. They lie in the workspace, or in torch's memory.
using LayerTap = std::function<void(uint32_t layer, const at::Tensor& rows)>;

// Computes the seeds' logits, [num_seeds, out_dim]. `parameters` are the model's tensors in
// manifest order, all of the element type of `input`, or float32 if that is bfloat16. In that case
// hidden rows are bfloat16, logits float32, and attention, norms and activations other than ReLU
// compute in float32 between them. Dropout is keyed by the sample's batch key
// (core/kernels/dropout.h, attention.h). Tensors of the graph lie in `workspace` until its Reset.
//
// With a history, the sample comes from TrainerHistory::Prune, and kept levels are merged.
at::Tensor ForwardBlocks(const Model& model, std::span<const at::Tensor> parameters,
                         const Sample& sample, const BottomInput& input, Workspace* workspace,
                         TrainerHistory* history = nullptr, const LayerTap& tap = {});

}  // namespace gnnd
