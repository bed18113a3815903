#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "train/ops/device_stream.h"
#include "train/ops/operators.h"

namespace gnnd {

// On a device with memory of its own, by its plug-in's kernels, with the bits of CpuOperators():
// workspaces are of a TrainStream (device_stream.h). Matrix products are the processor's
// (train/ops/affine.h) where device memory is the host's, else torch's, whose sums have an order of
// their own. There is nothing in float64, which only tests of the processor's operators use: those
// entries are null.
const Operators& DeviceOperators();

// Whether simulated devices multiply as a GPU's Trainer has torch do it (GNND_SIM_PRODUCTS=TORCH):
// in another order of sums, by the calls that otherwise only a GPU's Trainer makes.
bool SimulatesProductsOfTorch();

// Products as a GPU has them, of operators.h's arguments: nothing of theirs is allocated outside of
// the workspace.
void AffineOfTorch(const AffineOp& op, Workspace* workspace);
void TransposedOfTorch(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& out,
                       Workspace* workspace);

// Parts of it (device_attention.cc, device_row_models.cc).
AttentionOperators<float> DeviceAttention();
FinishOperators<float> DeviceFinish();
RowModelOperators<float> DeviceRowModels();

// A kernel in the plug-in's table.
template <typename Args>
using Kernel = uint32_t (*gnnd_device_plugin::*)(gnnd_device_stream*, const Args*,
                                                 gnnd_device_error*);

// Enqueues a kernel on the stream of the workspace.
template <typename Args>
void Launch(Workspace* workspace, Kernel<Args> kernel, const std::type_identity_t<Args>& args) {
  TrainStream& stream = TrainStream::Of(workspace->device());
  stream.Launch(stream.table().*kernel, args);
}

// Memory that a kernel works in, as large as its `bytes` in the plug-in's table says.
template <typename... Sizes>
std::byte* WorkOf(Workspace* workspace, uint64_t (*gnnd_device_plugin::*bytes)(Sizes...),
                  std::type_identity_t<Sizes>... sizes) {
  const gnnd_device_plugin& table = TrainStream::Of(workspace->device()).table();
  return workspace->Get<std::byte>((table.*bytes)(sizes...));
}

}  // namespace gnnd
