#pragma once

#include <ATen/core/Tensor.h>

#include "core/model/model_spec.h"
#include "train/ops/ops.h"
#include "train/ops/workspace.h"

// The operations after every layer but the last: normalisation, activation, dropout.

namespace gnnd {

// Makes a hidden layer's output from the layer's result `z` (overwritten). Layer normalisation
// (`scale` and `shift`, epsilon 1e-5, as torch.nn.LayerNorm) comes before the activation, L2 after
// it (as torch.nn.functional.normalize), dropout last.
at::Tensor FinishLayer(const ModelSpec& spec, const at::Tensor& z, const at::Tensor& scale,
                       const at::Tensor& shift, const DropoutSite& site, Workspace* workspace);

// Dropout alone, in place, on rows that FinishLayer returned without dropout.
at::Tensor DropRows(const at::Tensor& rows, const DropoutSite& site, Workspace* workspace);

// Layer normalisation alone.
at::Tensor LayerNorm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                     Workspace* workspace);

// Rows divided by their Euclidean norm, as torch.nn.functional.normalize.
at::Tensor Normalize(const at::Tensor& x, Workspace* workspace);

// FinishLayer without gradients or dropout, in place on `z`, float32.
void FinishLayerInPlace(const ModelSpec& spec, const at::Tensor& z, const at::Tensor& scale,
                        const at::Tensor& shift, Workspace* workspace);

}  // namespace gnnd
