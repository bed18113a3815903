#include "train/work/compute_side.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <optional>

#include "train/ops/ops.h"

namespace gnnd {

Status ComputeSide::WriteGradient(const Backward& batch, std::span<float> gradient,
                                  BatchReport* report) {
  const at::Tensor slopes =
      EmptyIn(&memory_, batch.outputs, batch.outputs.size(0), batch.outputs.size(1));
  GNND_TRY(batch.loss(slopes, report));
  std::vector<at::Tensor> moved;
  for (const at::Tensor& leaf : batch.leaves) {
    if (leaf.requires_grad()) moved.push_back(leaf);
  }
  const auto grads = torch::autograd::grad({batch.outputs}, moved, {slopes}, std::nullopt, false,
                                           /*allow_unused=*/true);
  TellMemory();
  const std::span<float> whole = Zeroed(gradient);
  const std::vector<at::Tensor> places = ViewsOf(batch.manifest, whole, where());
  auto next = grads.begin();
  for (size_t t = 0; t < places.size(); ++t) {
    if (!batch.leaves[t].requires_grad()) continue;
    if (next->defined()) places[t].view(next->sizes()).copy_(*next);
    ++next;
  }
  Bring(whole, gradient);
  return Status::Ok();
}

std::span<float> HostComputeSide::Zeroed(std::span<float> gradient) {
  std::fill(gradient.begin(), gradient.end(), 0.0F);
  return gradient;
}

Status DeviceComputeSide::Run(const Compute& compute) {
  const TrainStream::Current current(device_.compute());
  return compute();
}

Status DeviceComputeSide::RunTimed(const Compute& compute, uint64_t* ns) {
  return Run([&] {
    device_.compute().BeginTiming();
    GNND_TRY(compute());
    *ns = device_.compute().EndTiming();
    return Status::Ok();
  });
}

void DeviceComputeSide::Bring(std::span<const float> from, std::span<float> gradient) {
  device_.compute().CopyOut(gradient.data(), from.data(), from.size_bytes());
}

}  // namespace gnnd
