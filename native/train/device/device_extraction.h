#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/batch/sample.h"
#include "core/device/device.h"
#include "core/executor/train_work.h"
#include "core/feature/feature_store.h"
#include "train/device/peer_rows.h"
#include "train/input/extraction.h"
#include "train/input/train_options.h"
#include "train/ops/device_stream.h"

// Extraction to a device with memory of its own.

namespace gnnd {

// A device's own rows in its memory, and what else of the host's it reaches by itself.
class DeviceFeatures {
 public:
  // Loads the rows that options.device says, and lets others read them where there are any.
  // kDeviceMemory where they are over the device's budget; kInvalidArgument for an order of other
  // nodes, or a placement that contradicts itself.
  static Result<DeviceFeatures> Load(const TrainOptions& options);

  uint64_t cache_rows() const { return cache_rows_; }
  const RowPlacement& placement() const { return placement_; }
  // Of tiers(): those of the placement, which come first.
  uint32_t places() const { return places_; }
  uint64_t row_bytes() const { return features_.row_bytes(); }
  const RowTable& table() const { return features_; }
  // Of every node, where that leads to rows that a node's number does not; else empty.
  std::span<const uint32_t> node_ranks() const { return node_ranks_; }
  // Where kernels find rows: the placement's lines, with a place for each of theirs, then the
  // host's. Places of other devices are null.
  gnnd_device_row_tiers tiers() const;

 private:
  std::byte* memory() const { return cache_.data() == nullptr ? shared_.data() : cache_.data(); }

  RowTable features_;
  RowPlacement placement_;
  uint32_t places_ = 0;
  uint64_t cache_rows_ = 0;
  DeviceBuffer<std::byte> cache_;  // one of the two
  SharedDeviceBuffer shared_;
  const std::byte* seen_ = nullptr;  // of the host's rows; null: none
  uint64_t ranked_rows_ = 0;         // rows there by rank; 0: by node, of all nodes
  std::span<const uint32_t> node_ranks_;
};

// Nodes with their ranks, where they have any, in memory of the host's or of a device's.
struct RankedNodes {
  std::span<const uint32_t> nodes;
  std::span<const uint32_t> ranks;
};

// The launches that bring a batch's rows, of which `bus_rows` at `bus_positions` are the host's and
// others are kept by devices (`all.tiers`: their places come before `host_place`). Those that are
// kept take the whole device; what waits for the bus takes few blocks, beside which training runs.
std::vector<gnnd_device_gather> GathersOf(const gnnd_device_gather& all, uint32_t host_place,
                                          uint64_t kept_rows, uint64_t bus_rows,
                                          const uint32_t* bus_positions);

// Reads such rows, one call at a time. Borrows the features, and the peers.
class DeviceReader {
 public:
  // Without peers others' rows come from the host.
  explicit DeviceReader(const DeviceFeatures& features, PeerRows* peers = nullptr)
      : features_(features), peers_(peers), tiers_(features.tiers()) {}

  const DeviceFeatures& features() const { return features_; }

  // How the rows of the last Read came.
  void Tell(ExtractReport* report) const;

  // The rows of these nodes, in the features' own type, to `out`, which is device memory: hits from
  // the cache, misses over the bus, those that the device cannot read by way of the host. Nodes
  // without ranks have the features' node_ranks(). `copy` is what of `given` is on the device
  // already; what else is needed there goes to `workspace`. Throws DeviceError.
  void Read(const FeatureStore& store, const RankedNodes& given, const RankedNodes& copy,
            TrainStream* stream, Workspace* workspace, std::byte* out);

 private:
  // `given`, with ranks wherever any are known.
  RankedNodes Ranked(const RankedNodes& given);
  // Positions of what it reads over the bus; positions, nodes and ranks of what it cannot read; and
  // the ways of all.
  void Sort(const FeatureStore& store, const RankedNodes& given);
  void Account(std::span<const uint64_t> found);
  struct Ways {
    TierTraffic traffic;
    double wait_ns = 0;  // what the placement's costs come to
  };

  const DeviceFeatures& features_;
  PeerRows* peers_;
  gnnd_device_row_tiers tiers_;
  Ways ways_;
  std::vector<uint32_t> looked_up_;
  std::vector<uint32_t> bus_positions_;  // of the host's rows that the device reads by itself
  std::vector<uint32_t> positions_;
  std::vector<uint32_t> nodes_;
  std::vector<uint32_t> ranks_;
  std::vector<std::byte> rows_;
};

// ExtractRows to the device of buffer->memory, whose stream has run when it returns. Besides what
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
