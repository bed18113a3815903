#include "train/device/device_side.h"

#include <ATen/Context.h>

#include "train/ops/device_operators.h"

namespace gnnd {
namespace {

// Sets how this process's products on a device are computed, so that environment and torch's
// defaults cannot change a spec's bits.
void UsePrecision(Precision precision) {
  at::globalContext().setAllowTF32CuBLAS(precision == Precision::kTf32);
  // Sums within a product of bfloat16 stay float32, even if cuBLAS splits the product.
  at::globalContext().setAllowBF16ReductionCuBLAS(false);
}

}  // namespace

Result<std::unique_ptr<DeviceSide>> DeviceSide::Create(const TrainOptions& options,
                                                       uint64_t num_floats) {
  std::unique_ptr<DeviceSide> side =
      GNND_VALUE(Create(*options.device.device, num_floats, options.precision));
  side->features_ = GNND_VALUE(DeviceFeatures::Load(options));
  return side;
}

Result<std::unique_ptr<DeviceSide>> DeviceSide::Create(const Device& device, uint64_t num_floats,
                                                       Precision precision) {
  UsePrecision(precision);
  std::unique_ptr<DeviceSide> side(new DeviceSide(device));
  side->extract_ =
      GNND_VALUE(TrainStream::Create(device, TrainStream::Use::kExtract, DeviceOperators()));
  side->compute_ =
      GNND_VALUE(TrainStream::Create(device, TrainStream::Use::kCompute, DeviceOperators()));
  side->parameters_ =
      GNND_VALUE(DeviceBuffer<float>::Allocate(device, num_floats, DevicePurpose::kModel));
  side->gradient_ =
      GNND_VALUE(DeviceBuffer<float>::Allocate(device, num_floats, DevicePurpose::kModel));
  return side;
}

std::span<const float> DeviceSide::Parameters(const ParametersView& view) {
  if (!held_.has_value() || !held_->SameAs(view)) {
    held_.reset();  // in case the copy fails
    compute_->CopyIn(parameters_.data(), view.floats.data(), view.floats.size_bytes());
    held_ = view;
  }
  return {parameters_.data(), parameters_.size()};
}

std::span<float> DeviceSide::Gradient() {
  compute_->Fill(gradient_.data(), 0, gradient_.bytes());
  return {gradient_.data(), gradient_.size()};
}

void DeviceSide::Drain() noexcept {
  extract_->Drain();
  compute_->Drain();
}

}  // namespace gnnd
