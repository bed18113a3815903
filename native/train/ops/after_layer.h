#pragma once

#include <ATen/core/Tensor.h>

#include "core/model/model_spec.h"
#include "train/ops/ops.h"
#include "train/ops/workspace.h"

// What follows every layer but the last: normalisation, activation, dropout.

namespace gnnd {

// A hidden layer's output from what the layer computed, `z` (overwritten). Layer normalisation
// (`scale` and `shift`, epsilon 1e-5, as torch.nn.LayerNorm) comes before the activation, L2 after
// it (as torch.nn.functional.normalize), dropout last.
at::Tensor FinishLayer(const ModelSpec& spec, const at::Tensor& z, const at::Tensor& scale,
                       const at::Tensor& shift, const DropoutSite& site, Workspace* workspace);

// Dropout alone, in place, of rows that FinishLayer gave with none.
at::Tensor DropRows(const at::Tensor& rows, const DropoutSite& site, Workspace* workspace);

// Layer normalisation of rows alone.
at::Tensor LayerNorm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                     Workspace* workspace);

// FinishLayer without gradients or dropout, in place on `z`, float32.
void FinishLayerInPlace(const ModelSpec& spec, const at::Tensor& z, const at::Tensor& scale,
                        const at::Tensor& shift, Workspace* workspace);

}  // namespace gnnd
