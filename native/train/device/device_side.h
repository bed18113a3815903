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

// A Trainer's part of its device besides batches: a stream for extraction, one for gradients, the
// cache, and one copy of parameters and gradient.
class DeviceSide {
 public:
  // `num_floats` is the size of the parameter vector. kDeviceUnavailable if the plug-in lacks a
  // kernel, kDeviceMemory if something does not fit; TrainOptions says the rest.
  static Result<std::unique_ptr<DeviceSide>> Create(const TrainOptions& options,
                                                    uint64_t num_floats);

  // For rows that others provide: without a cache.
  static Result<std::unique_ptr<DeviceSide>> Create(const Device& device, uint64_t num_floats,
                                                    Precision precision);

  TrainStream& extract() { return *extract_; }
  TrainStream& compute() { return *compute_; }
  const DeviceFeatures& features() const { return features_; }
  const Device& device() const { return device_; }

  // These parameters in device memory, copied unless the last call had the same. Throws
  // DeviceError, like Gradient.
  std::span<const float> Parameters(const ParametersView& view);
  // Zeroed device memory for the gradient.
  std::span<float> Gradient();

  // Waits for all enqueued work; must be called before its memory goes.
  void Drain() noexcept;

 private:
  explicit DeviceSide(const Device& device) : device_(device) {}

  const Device& device_;
  std::unique_ptr<TrainStream> extract_;
  std::unique_ptr<TrainStream> compute_;
  DeviceFeatures features_;
  DeviceBuffer<float> parameters_;
  DeviceBuffer<float> gradient_;
  std::optional<ParametersView> held_;  // only compared: its floats may be gone
};

}  // namespace gnnd
