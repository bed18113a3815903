#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/device/device.h"
#include "core/executor/graph_sampler.h"
#include "core/executor/sample_work.h"
#include "core/sample/device_sampler.h"

namespace gnnd {

// GraphSampler's twin on a device, with two batches under way. Owns its mapping of the topology
// until that is on the device.
class DeviceSampleWork final : public SampleWork {
 public:
  // The ranks for records; empty if records carry none.
  struct HotRanks {
    std::span<const uint32_t> ranks{};  // ranks of all nodes; read by Create
    uint64_t largest_cache = 0;         // ranks from here on are not recorded
  };

  // Borrows the device. Items are nodes: devices know no pairs. Errors: GraphSampler::Create's,
  // kDeviceMemory and kDeviceUnavailable.
  static Result<std::unique_ptr<SampleWork>> Create(const Device& device, const Topology& topology,
                                                    const GraphSampler::Options& options,
                                                    const RecordLayout& layout,
                                                    const HotRanks& hot);

  // Number of batches under way.
  static constexpr uint32_t kDepth = 2;

  uint32_t depth() const override { return kDepth; }
  Status Start(const SampleTask& task) override;
  Status Finish(const SampleTask& task, SampleReport* report) override;
  void Abandon() override { sampler_.reset(); }

 private:
  DeviceSampleWork(const Device& device, std::unique_ptr<DeviceSampler> sampler)
      : device_(device), sampler_(std::move(sampler)) {}

  const Device& device_;
  std::unique_ptr<DeviceSampler> sampler_;
  uint64_t finished_ = 0;
};

}  // namespace gnnd
