#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/batch/layout.h"
#include "core/device/device.h"
#include "core/draw/alias.h"
#include "core/graph/topology_view.h"
#include "core/sample/options.h"

namespace gnnd {

// The sampler's twin on a device: the graph is copied there once, the device's kernels make batches
// and write them into slots, bit for bit the records of Sampler (sampler.h). Starting and finishing
// a batch are separate calls, so that it is computed while the previous one is copied.
class DeviceSampler {
 public:
  struct Batches {
    uint64_t random_seed = 0;
    std::span<const uint32_t> train_nodes;  // read by Create
    uint32_t batch_size = 0;
    uint32_t depth = 1;  // batches under way, 1 or 2
    bool hash = false;   // relabel by hashing even if the graph is small
    // Hot rank of every node, for records that carry ranks; empty: they carry none. Read by Create.
    std::span<const uint32_t> ranks{};
  };

  // `layout` must belong to this graph and these options; the topology has alias tables if the
  // algorithm is kWeighted. Borrows the device. kDeviceMemory if the graph and `depth` workspaces
  // exceed its budget; kDeviceUnavailable for samplers in plug-ins and for locality.
  static Result<std::unique_ptr<DeviceSampler>> Create(const Device& device,
                                                       const TopologyView& topology,
                                                       const SamplerOptions& options,
                                                       const RecordLayout& layout,
                                                       const Batches& batches);
  DeviceSampler(const DeviceSampler&) = delete;
  DeviceSampler& operator=(const DeviceSampler&) = delete;
  ~DeviceSampler();

  // Begins a batch; fewer than `depth` are under way. `slot` is at least layout.slot_bytes() large.
  Status Start(uint32_t epoch, uint32_t batch, std::span<std::byte> slot);
  // Finishes the oldest batch: its record is then complete in the slot that Start was given.
  Status Finish(gnnd_device_sample_report* report);

 private:
  DeviceSampler(const Device& device, const RecordLayout& layout, const Batches& batches)
      : device_(device), layout_(layout), random_seed_(batches.random_seed) {}

  Status Upload(const TopologyView& topology, const Batches& batches);
  gnnd_device_sampler_config ConfigOf(const TopologyView& topology, const SamplerOptions& options,
                                      const Batches& batches) const;

  struct Started {
    uint32_t epoch;
    uint32_t batch;
    std::span<std::byte> slot;
  };

  const Device& device_;
  RecordLayout layout_;
  uint64_t random_seed_;
  DeviceBuffer<uint64_t> indptr_;
  DeviceBuffer<uint32_t> indices_;
  DeviceBuffer<AliasEntry> alias_;
  DeviceBuffer<uint32_t> ranks_;
  gnnd_device_sampler* sampler_ = nullptr;
  std::vector<Started> started_;  // in order
};

}  // namespace gnnd
