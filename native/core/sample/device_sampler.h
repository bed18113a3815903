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

// The sampler's twin on a device: the graph is copied there once, batches are made by the device's
// kernels and written into slots, bit for bit the records of Sampler (sampler.h). A batch is
// started and finished apart, so that it is computed while the one before is copied.
class DeviceSampler {
 public:
  struct Batches {
    uint64_t random_seed = 0;
    std::span<const uint32_t> train_nodes;  // read by Create
    uint32_t batch_size = 0;
    uint32_t depth = 1;  // batches in hand, 1 or 2
    bool hash = false;   // relabel by hashing whatever the graph's size
    // Of all nodes, as records are to carry them; empty: they carry none. Read by Create.
    std::span<const uint32_t> ranks{};
  };

  // `layout` is that of this graph and these options; the topology has alias tables where the
  // algorithm is kWeighted. Borrows the device. kDeviceMemory where the graph and `depth`
  // workspaces do not fit its budget; kDeviceUnavailable for what it cannot do: plug-ins of
  // samplers, and locality.
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
  // The one that was started first: its record is complete in the slot that it was started with.
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
