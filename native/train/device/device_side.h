#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/executor/train_work.h"
#include "train/device/device_extraction.h"
#include "train/input/train_options.h"
#include "train/ops/device_stream.h"

namespace gnnd {

// What a Trainer has on its device beside batches: a stream for extraction, one for gradients, the
// cache, and one copy of parameters and gradient.
class DeviceSide {
 public:
  // `num_floats` of the parameter vector. kDeviceUnavailable where the plug-in lacks a kernel,
  // kDeviceMemory where something does not fit; TrainOptions says the rest.
  static Result<std::unique_ptr<DeviceSide>> Create(const TrainOptions& options,
                                                    uint64_t num_floats);

  // Of rows that others bring: no cache.
  static Result<std::unique_ptr<DeviceSide>> Create(const Device& device, uint64_t num_floats,
                                                    Precision precision);

  TrainStream& extract() { return *extract_; }
  TrainStream& compute() { return *compute_; }
  const DeviceFeatures& features() const { return features_; }
  const Device& device() const { return device_; }

  // Device memory with these parameters: copied unless they are those of the last call. Throws
  // DeviceError, as Gradient.
  std::span<const float> Parameters(const ParametersView& view);
  // Device memory for the gradient, all zero.
  std::span<float> Gradient();

  // Waits for all that was asked for; before the memory goes that it works on.
  void Drain() noexcept;

 private:
  explicit DeviceSide(const Device& device) : device_(device) {}

  const Device& device_;
  std::unique_ptr<TrainStream> extract_;
  std::unique_ptr<TrainStream> compute_;
  DeviceFeatures features_;
  DeviceBuffer<float> parameters_;
  DeviceBuffer<float> gradient_;
  std::optional<ParametersView> held_;  // its floats may be gone
};

}  // namespace gnnd
