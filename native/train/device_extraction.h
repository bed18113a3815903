#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/batch/sample.h"
#include "core/device/device.h"
#include "core/feature/feature_store.h"
#include "train/device_stream.h"
#include "train/extraction.h"
#include "train/train_options.h"

// Extraction to a device with memory of its own.

namespace gnnd {

// The hottest rows in a device's memory, and how it reaches the others.
class DeviceFeatures {
 public:
  // Loads as many rows of options.hot_order as options.device.cache_bytes hold. kDeviceMemory where
  // they are over the device's budget; kInvalidArgument for an order of other nodes.
  static Result<DeviceFeatures> Load(const TrainOptions& options);

  uint64_t cache_rows() const { return cache_rows_; }
  // Of the last Read: rows that the device could not read itself.
  uint64_t staged_rows() const { return positions_.size(); }

  // The rows of the nodes of `sample`, in the features' own type, to `out`, which is device memory
  // as all of `copy`, that is the sample's copy there: hits from the cache, misses over the bus,
  // those that the device cannot read by way of the host. One call at a time. Throws DeviceError.
  void Read(const FeatureStore& store, const Sample& sample, const Sample& copy,
            TrainStream* stream, Workspace* workspace, std::byte* out);

 private:
  // Positions, nodes and ranks of what the device cannot read.
  void ListMisses(const Sample& sample);

  RowTable features_;
  uint64_t cache_rows_ = 0;
  DeviceBuffer<std::byte> cache_;
  const std::byte* seen_ = nullptr;  // of the host's rows; null: none
  uint64_t ranked_rows_ = 0;         // rows there by rank; 0: by node, of all nodes
  std::vector<uint32_t> positions_;
  std::vector<uint32_t> nodes_;
  std::vector<uint32_t> ranks_;
  std::vector<std::byte> rows_;
};

// ExtractBatch to the device of buffer->memory, whose stream has run when it returns. Besides what
// that does, the sample itself is copied. Throws DeviceError.
Status ExtractToDevice(const TrainOptions& options, const FeatureStore& store, const Sample& sample,
                       DeviceFeatures* features, ExtractBuffer* buffer);

}  // namespace gnnd
