#pragma once

#include <cstdint>

namespace gnnd {

// An executor's memory and traffic on a device with memory of its own; all 0 on a CPU device.
struct DeviceUse {
  uint64_t topology_bytes = 0;
  uint64_t cache_bytes = 0;
  uint64_t workspace_bytes = 0;
  uint64_t model_bytes = 0;
  uint64_t copied_in_bytes = 0;  // to the device, since it was opened
  uint64_t copied_out_bytes = 0;
  uint64_t registered_bytes = 0;  // host memory that is registered
  uint64_t beside_bytes = 0;      // device memory taken by others (gnnd_device_memory)
};

// Whether use is measured at the batch with this number: measuring costs as much as a kernel or
// two, and memory grows with the first batches.
constexpr bool IsUseDue(uint64_t batch) { return batch < 16 || batch % 16 == 0; }

}  // namespace gnnd
