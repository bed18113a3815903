#pragma once

#include "train/ops/operators.h"

namespace gnnd {

// On a device with memory of its own, by its plug-in's kernels, with the bits of CpuOperators():
// workspaces are of a TrainStream (device_stream.h). Matrix products are the processor's
// (train/ops/affine.h) where device memory is the host's, else torch's, whose sums have an order of
// their own. There is nothing in float64, which only tests of the processor's operators use: those
// entries are null.
const Operators& DeviceOperators();

// Products as a GPU has them, of operators.h's arguments: nothing of theirs is allocated outside of
// the workspace.
void AffineOfTorch(const AffineOp& op, Workspace* workspace);
void TransposedOfTorch(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& out,
                       Workspace* workspace);

// Parts of it (device_attention.cc, device_row_models.cc).
AttentionOperators<float> DeviceAttention();
FinishOperators<float> DeviceFinish();
RowModelOperators<float> DeviceRowModels();

}  // namespace gnnd
