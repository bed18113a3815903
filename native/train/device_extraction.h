#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
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

// The hottest rows in a device's memory, and what else of the host's it reaches by itself.
class DeviceFeatures {
 public:
  // Loads as many rows of options.hot_order as options.device.cache_bytes hold. kDeviceMemory where
  // they are over the device's budget; kInvalidArgument for an order of other nodes.
  static Result<DeviceFeatures> Load(const TrainOptions& options);

  uint64_t cache_rows() const { return cache_rows_; }
  uint64_t row_bytes() const { return features_.row_bytes(); }
  const RowTable& table() const { return features_; }
  // Of every node, where that leads to rows that a node's number does not; else empty.
  std::span<const uint32_t> node_ranks() const { return node_ranks_; }
  // Whether it has no row of a node without a rank.
  bool needs_ranks() const { return seen_ == nullptr || ranked_rows_ > 0; }
  // Rows of ranks below are the device's to read; without a rank where !needs_ranks().
  uint64_t end_rank() const { return std::max(cache_rows_, seen_ == nullptr ? 0 : ranked_rows_); }
  // But for nodes, ranks, their number and where rows go.
  gnnd_device_gather gather() const;

 private:
  RowTable features_;
  uint64_t cache_rows_ = 0;
  DeviceBuffer<std::byte> cache_;
  const std::byte* seen_ = nullptr;  // of the host's rows; null: none
  uint64_t ranked_rows_ = 0;         // rows there by rank; 0: by node, of all nodes
  std::span<const uint32_t> node_ranks_;
};

// Nodes with their ranks, where they have any, in memory of the host's or of a device's.
struct RankedNodes {
  std::span<const uint32_t> nodes;
  std::span<const uint32_t> ranks;
};

// Reads such rows, one call at a time. Borrows the features.
class DeviceReader {
 public:
  explicit DeviceReader(const DeviceFeatures& features) : features_(features) {}

  const DeviceFeatures& features() const { return features_; }

  // Of the last Read: rows that the device could not read itself.
  uint64_t staged_rows() const { return positions_.size(); }

  // The rows of these nodes, in the features' own type, to `out`, which is device memory: hits from
  // the cache, misses over the bus, those that the device cannot read by way of the host. Nodes
  // without ranks have the features' node_ranks(). `copy` is what of `given` is on the device
  // already; what else is needed there goes to `workspace`. Throws DeviceError.
  void Read(const FeatureStore& store, const RankedNodes& given, const RankedNodes& copy,
            TrainStream* stream, Workspace* workspace, std::byte* out);

 private:
  // `given`, with ranks wherever any are known.
  RankedNodes Ranked(const RankedNodes& given);
  // Positions, nodes and ranks of what the device cannot read.
  void ListMisses(const RankedNodes& given);

  const DeviceFeatures& features_;
  std::vector<uint32_t> looked_up_;
  std::vector<uint32_t> positions_;
  std::vector<uint32_t> nodes_;
  std::vector<uint32_t> ranks_;
  std::vector<std::byte> rows_;
};

// ExtractBatch to the device of buffer->memory, whose stream has run when it returns. Besides what
// that does, the sample itself is copied. Throws DeviceError.
Status ExtractToDevice(const TrainOptions& options, const FeatureStore& store, const Sample& sample,
                       DeviceReader* reader, ExtractBuffer* buffer);

// A sample's copy on the workspace's device, and its nodes' rows there in float32, as they are in
// the features. Throws DeviceError.
Sample CopyToDevice(const FeatureStore& store, const Sample& sample, DeviceReader* reader,
                    Workspace* workspace, at::Tensor* rows);

// float32 of rows in any type, that lie in the memory of the workspace's device: [count, dim].
at::Tensor FloatsOf(const RowTable& raw, uint64_t count, Workspace* workspace);

}  // namespace gnnd
