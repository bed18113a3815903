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

// A device's own rows in its memory, and the rows of the host's that it can read by itself.
class DeviceFeatures {
 public:
  // Loads the rows of options.device, and shares them if there are any. kDeviceMemory if they
  // exceed the device's budget; kInvalidArgument for an order of other nodes, or a placement that
  // contradicts itself.
  static Result<DeviceFeatures> Load(const TrainOptions& options);

  uint64_t cache_rows() const { return cache_rows_; }
  const RowPlacement& placement() const { return placement_; }
  // Number of the placement's places, which are the first of tiers().
  uint32_t places() const { return places_; }
  uint64_t row_bytes() const { return features_.row_bytes(); }
  const RowTable& table() const { return features_; }
  // Hot ranks of all nodes if ranks lead to rows that node ids do not; else empty.
  std::span<const uint32_t> node_ranks() const { return node_ranks_; }
  // The table by which kernels find rows: the placement's lines with their places, then the host's.
  // Places of other devices are null.
  gnnd_device_row_tiers tiers() const;

 private:
  std::byte* memory() const { return cache_.data() == nullptr ? shared_.data() : cache_.data(); }

  RowTable features_;
  RowPlacement placement_;
  uint32_t places_ = 0;
  uint64_t cache_rows_ = 0;
  DeviceBuffer<std::byte> cache_;  // only one of the two is used
  SharedDeviceBuffer shared_;
  const std::byte* seen_ = nullptr;  // the host's rows; null: none
  uint64_t ranked_rows_ = 0;  // number of the host's rows by rank; 0: rows of all nodes by id
  std::span<const uint32_t> node_ranks_;
};

// Nodes with their ranks, if known, in the host's or a device's memory.
struct RankedNodes {
  std::span<const uint32_t> nodes;
  std::span<const uint32_t> ranks;
};

// The launches that gather a batch's rows: `bus_rows` of them, at `bus_positions`, are the host's;
// devices hold the rest (`all.tiers`: their places come before `host_place`). Gathers of held rows
// take the whole device, those over the bus few blocks, so that training runs beside them.
std::vector<gnnd_device_gather> GathersOf(const gnnd_device_gather& all, uint32_t host_place,
                                          uint64_t kept_rows, uint64_t bus_rows,
                                          const uint32_t* bus_positions);

// Reads a batch's rows, one call at a time. Borrows the features and the peers.
class DeviceReader {
 public:
  // Without peers, the host provides other devices' rows.
  explicit DeviceReader(const DeviceFeatures& features, PeerRows* peers = nullptr)
      : features_(features), peers_(peers), tiers_(features.tiers()) {}

  const DeviceFeatures& features() const { return features_; }

  // Reports how the rows of the last Read were read.
  void Tell(ExtractReport* report) const;

  // Writes the rows of these nodes, in the features' own type, to `out` in device memory: hits from
  // the cache, misses over the bus, and rows that the device cannot read by way of the host. Nodes
  // without ranks get the features' node_ranks(). `copy` is the part of `given` that the device has
  // already; other arrays that it needs go to `workspace`. Throws DeviceError.
  void Read(const FeatureStore& store, const RankedNodes& given, const RankedNodes& copy,
            TrainStream* stream, Workspace* workspace, std::byte* out);

 private:
  // `given`, completed with ranks where they are known.
  RankedNodes Ranked(const RankedNodes& given);
  // Lists the positions of rows read over the bus, the positions, nodes and ranks of rows that the
  // device cannot read, and the way of every row.
  void Sort(const FeatureStore& store, const RankedNodes& given);
  void Account(std::span<const uint64_t> found);
  struct Ways {
    TierTraffic traffic;
    double wait_ns = 0;  // by the placement's costs
  };

  const DeviceFeatures& features_;
  PeerRows* peers_;
  gnnd_device_row_tiers tiers_;
  Ways ways_;
  std::vector<uint32_t> looked_up_;
  std::vector<uint32_t> bus_positions_;  // the host's rows that the device reads by itself
  std::vector<uint32_t> positions_;
  std::vector<uint32_t> nodes_;
  std::vector<uint32_t> ranks_;
  std::vector<std::byte> rows_;
};

// ExtractRows to the device of buffer->memory, whose stream has run when this returns. The sample
// itself is copied, too. Throws DeviceError.
Status ExtractToDevice(const TrainOptions& options, const FeatureStore& store, const Sample& sample,
                       DeviceReader* reader, ExtractBuffer* buffer);

// Copies a sample to the workspace's device, and its nodes' rows in float32, as the features have
// them. Throws DeviceError.
Sample CopyToDevice(const FeatureStore& store, const Sample& sample, DeviceReader* reader,
                    Workspace* workspace, at::Tensor* rows);

// Converts rows of any type in the device memory of the workspace to float32: [count, dim].
at::Tensor FloatsOf(const RowTable& raw, uint64_t count, Workspace* workspace);

}  // namespace gnnd
