#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/mapping.h"
#include "core/base/status.h"
#include "core/device/device.h"
#include "core/executor/train_work.h"
#include "train/device/device_side.h"
#include "train/input/rows_options.h"
#include "train/ops/workspace.h"

// The device memory of a Trainer of a model over rows: parameters and gradient, batches of rows
// and, if the device is the rows' tier, the rows themselves.

namespace gnnd {

// Host memory for Workspaces that a device copies from by itself. Memory that it refuses to
// register is copied through its pinned ring.
class PinnedHost {
 public:
  explicit PinnedHost(const Device& device);
  PinnedHost(const PinnedHost&) = delete;
  PinnedHost& operator=(const PinnedHost&) = delete;

  // Computes like the processor. Valid as long as this object.
  const TrainDevice& train_device() const { return train_device_; }

 private:
  struct Chunk {
    Mapping memory;
    std::unique_ptr<HostRegistration> registered;  // null: refused
  };

  const Device& device_;
  TrainDevice train_device_;
  std::vector<Chunk> chunks_;
};

// A batch of rows on a device.
struct DeviceBatch {
  std::vector<at::Tensor> tokens;  // each [rows, columns]
  const uint32_t* nodes = nullptr;
  const uint32_t* labels = nullptr;
  uint64_t device_ns = 0;  // device time of its transfer
};

class DeviceRows {
 public:
  // The extracting thread makes batches below kExtractBuffers, the computing thread this one.
  static constexpr uint32_t kEvaluated = kExtractBuffers;

  // kDeviceUnavailable if the plug-in lacks a kernel, kDeviceMemory if something does not fit; for
  // RowTier::kDevice also the errors of NpyArray::Open.
  static Result<std::unique_ptr<DeviceRows>> Create(const RowsOptions& options,
                                                    uint64_t num_floats);

  DeviceSide& side() { return *side_; }
  const TrainDevice& pinned() const { return pinned_.train_device(); }
  // Number of rows, the first of every token, that the device holds itself.
  uint64_t held_rows() const { return held_rows_; }
  uint64_t reserved_bytes() const;

  // Makes a batch from rows in the host's memory, [rows, columns] for each token. Both functions
  // throw DeviceError.
  const DeviceBatch& Put(uint32_t number, const std::vector<at::Tensor>& tokens,
                         std::span<const uint32_t> nodes, std::span<const uint32_t> labels);
  // REQUIRES: rows below held_rows().
  const DeviceBatch& Gather(uint32_t number, std::span<const uint32_t> rows,
                            std::span<const uint32_t> nodes, std::span<const uint32_t> labels);
  const DeviceBatch& batch(uint32_t number) const { return batches_[number]; }

 private:
  DeviceRows(const RowsOptions& options, std::unique_ptr<DeviceSide> side)
      : options_(options),
        side_(std::move(side)),
        pinned_(*options.device),
        memory_{Workspace(side_->extract().train_device()),
                Workspace(side_->extract().train_device()),
                Workspace(side_->compute().train_device())} {}

  Status LoadRows();
  Status LoadToken(const std::string& path);
  TrainStream& StreamOf(uint32_t number) {
    return number == kEvaluated ? side_->compute() : side_->extract();
  }
  DeviceBatch* Begin(uint32_t number, std::span<const uint32_t> nodes,
                     std::span<const uint32_t> labels);
  template <typename T>
  T* Copied(uint32_t number, std::span<const T> values);

  RowsOptions options_;
  std::unique_ptr<DeviceSide> side_;
  PinnedHost pinned_;
  Workspace memory_[kExtractBuffers + 1];
  DeviceBatch batches_[kExtractBuffers + 1];
  std::vector<DeviceBuffer<std::byte>> tokens_;  // held_rows_ rows in their stored type
  uint64_t held_rows_ = 0;
  uint32_t element_ = 0;  // type of the stored rows, enum gnnd_element
};

}  // namespace gnnd
