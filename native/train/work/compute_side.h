#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/executor/train_work.h"
#include "core/model/model_spec.h"
#include "train/device/device_side.h"
#include "train/ops/operators.h"
#include "train/ops/workspace.h"

namespace gnnd {

// The place where a Trainer computes gradients and evaluations: the processor, or a device with
// memory of its own. Used by one thread, except told_bytes.
class ComputeSide {
 public:
  explicit ComputeSide(const TrainDevice& device) : memory_(device) {}
  virtual ~ComputeSide() = default;

  Workspace& memory() { return memory_; }
  const Operators& operators() const { return memory_.operators(); }
  at::Device where() const { return memory_.device().where; }

  using Compute = std::function<Status()>;
  // Runs `compute`; this thread's torch operators compute here meanwhile.
  virtual Status Run(const Compute& compute) = 0;
  // Does the same and sets `ns` to the time that the device took; the processor leaves it alone.
  virtual Status RunTimed(const Compute& compute, uint64_t* ns) = 0;

  // Returns these parameters in memory of this place.
  virtual std::span<const float> Parameters(const ParametersView& view) = 0;

  // Writes the loss of a batch's outputs to `report`, and its gradient to `grad`, like them.
  using Loss = std::function<Status(const at::Tensor& grad, BatchReport* report)>;
  // The input of a batch's gradient. `leaves` are in manifest order; those that require no gradient
  // get none. `outputs` are a contiguous matrix.
  struct Backward {
    const ParameterManifest& manifest;
    std::span<const at::Tensor> leaves;
    const at::Tensor& outputs;
    Loss loss;
  };
  // Reports the loss and writes the gradient: zero in padding and for tensors that this batch did
  // not use. `gradient` is complete once RunTimed has returned.
  Status WriteGradient(const Backward& batch, std::span<float> gradient, BatchReport* report);

  // Bytes of the batch memory and of evaluations, as they were last told. Any thread may ask.
  uint64_t told_bytes() const {
    return batch_bytes_.load(std::memory_order_relaxed) +
           chunk_bytes_.load(std::memory_order_relaxed);
  }
  void TellMemory() { batch_bytes_.store(memory_.reserved_bytes(), std::memory_order_relaxed); }
  // Tells the bytes that evaluations hold beside it.
  void TellChunks(uint64_t bytes) { chunk_bytes_.store(bytes, std::memory_order_relaxed); }

  // Waits for all work of a device; called before the memory goes that it works on.
  virtual void Drain() noexcept {}

 protected:
  // Returns zeroed memory of this place for the gradient; Bring copies it to `gradient`.
  virtual std::span<float> Zeroed(std::span<float> gradient) = 0;
  virtual void Bring(std::span<const float> from, std::span<float> gradient) = 0;

 private:
  Workspace memory_;
  std::atomic<uint64_t> batch_bytes_{0};
  std::atomic<uint64_t> chunk_bytes_{0};
};

// The processor, or other operators on the host's memory.
class HostComputeSide final : public ComputeSide {
 public:
  explicit HostComputeSide(const TrainDevice& device = CpuDevice()) : ComputeSide(device) {}
  Status Run(const Compute& compute) override { return compute(); }
  Status RunTimed(const Compute& compute, uint64_t*) override { return compute(); }
  std::span<const float> Parameters(const ParametersView& view) override { return view.floats; }

 protected:
  std::span<float> Zeroed(std::span<float> gradient) override;
  void Bring(std::span<const float>, std::span<float>) override {}
};

// A device, which is borrowed.
class DeviceComputeSide final : public ComputeSide {
 public:
  explicit DeviceComputeSide(DeviceSide* device)
      : ComputeSide(device->compute().train_device()), device_(*device) {}
  Status Run(const Compute& compute) override;
  Status RunTimed(const Compute& compute, uint64_t* ns) override;
  std::span<const float> Parameters(const ParametersView& view) override {
    return device_.Parameters(view);
  }
  void Drain() noexcept override { device_.Drain(); }

 protected:
  std::span<float> Zeroed(std::span<float>) override { return device_.Gradient(); }
  void Bring(std::span<const float> from, std::span<float> gradient) override;

 private:
  DeviceSide& device_;
};

}  // namespace gnnd
