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

// What a Trainer of a model over rows has on a device with memory of its own: parameters and
// gradient, batches of rows, and where that is the rows' tier, the rows themselves.

namespace gnnd {

// Host memory that a device copies from by itself, for Workspaces. What it will not register is
// copied by way of its pinned ring.
class PinnedHost {
 public:
  explicit PinnedHost(const Device& device);
  PinnedHost(const PinnedHost&) = delete;
  PinnedHost& operator=(const PinnedHost&) = delete;

  // Computes as the processor. As long as this object.
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

// A batch of rows that is on a device.
struct DeviceBatch {
  std::vector<at::Tensor> tokens;  // each [rows, columns]
  const uint32_t* nodes = nullptr;
  const uint32_t* labels = nullptr;
  uint64_t device_ns = 0;  // that getting it there took
};

class DeviceRows {
 public:
  // Batches below kExtractBuffers are made by the thread that extracts, this one by that which
  // computes.
  static constexpr uint32_t kEvaluated = kExtractBuffers;

  // kDeviceUnavailable where the plug-in lacks a kernel, kDeviceMemory where something does not
  // fit; of RowTier::kDevice, what NpyArray::Open answers.
  static Result<std::unique_ptr<DeviceRows>> Create(const RowsOptions& options,
                                                    uint64_t num_floats);

  DeviceSide& side() { return *side_; }
  const TrainDevice& pinned() const { return pinned_.train_device(); }
  // Rows of all tokens that the device itself holds: the first so many.
  uint64_t held_rows() const { return held_rows_; }
  uint64_t reserved_bytes() const;

  // A batch from rows in the host's memory, [rows, columns] of each token. Throws DeviceError, as
  // the next.
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
  std::vector<DeviceBuffer<std::byte>> tokens_;  // held_rows_ rows as they are stored
  uint64_t held_rows_ = 0;
  uint32_t element_ = 0;  // of what is stored, enum gnnd_element
};

}  // namespace gnnd
