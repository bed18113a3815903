#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace gnnd::sim {

// The name under which simulated devices appear: their own, or CUDA's name, kind of UUID and
// environment variable, so that code for GPUs can be tried without any.
struct Pose {
  const char* name;
  const char* visible;  // variable that names visible devices by UUID, in this order
  const char* uuid;     // prefix of UUIDs
  uint32_t architecture;
};
inline constexpr Pose kAsSimulated = {"sim", "GNND_SIM_VISIBLE", "SIM", 0};
inline constexpr Pose kAsCuda = {"cuda", "CUDA_VISIBLE_DEVICES", "GPU", 90};

// The pose of this plug-in (pose/).
const Pose& ThePose();

// The simulated devices and the faults that befall them, read from the environment.
struct Script {
  uint32_t devices = 1;                       // GNND_SIM_DEVICES, up to 64
  uint64_t memory_bytes = uint64_t{1} << 30;  // GNND_SIM_MEMORY, of each
  uint64_t random_seed = 1;                   // GNND_SIM_MEMORY, per device
  // GNND_SIM_RESERVE: device memory that one of torch's products takes, once and unasked, as
  // cuBLAS's workspace and loaded kernels do on a GPU. If it is not free, the product runs out of
  // memory.
  uint64_t reserve_bytes = 0;
  uint32_t processes = 0;  // GNND_SIM_PROCESSES, strangers on each device
  int system_error = 0;    // GNND_SIM_SYSTEM, a CUDA error: why there are no devices
  // GNND_SIM_KIND, the enum gnnd_memory_kind that devices report: with GNND_MEMORY_DEVICE torch is
  // asked for CUDA, as on a GPU.
  uint32_t memory_kind = 2;
  // The devices that this process sees, from the variable Pose::visible; all if it is not set.
  std::vector<uint32_t> visible;
  // GNND_SIM_PEERS=A-B:KIND[,...]: these two devices can read each other's memory, over NVLINK,
  // PCIE or HOST_BUS.
  struct Peers {
    uint32_t a = 0;
    uint32_t b = 0;
    uint32_t kind = 0;  // enum gnnd_link_kind
    bool operator==(const Peers&) const = default;
  };
  std::vector<Peers> peers;
  // GNND_SIM_RATES=WAY:N[,...]: GB a second that a device reads of another's memory over NVLINK,
  // PCIE or HOST_BUS, and of the HOST's. Reported only, never simulated. Indexed by gnnd_link_kind;
  // 0: the host.
  std::array<uint64_t, 4> rates = {10, 50, 12, 8};
  // GNND_SIM_FAULT=KIND:N[,KIND:N]: a fault in the N-th call of its sort, from 1:
  //   memory    an allocation of device memory fails
  //   register  registering host memory is refused
  //   launch    a copy, fill or kernel faults as it runs
  //   lost      likewise, and the device is gone
  //   torch-memory  torch finds no memory for a product
  // and GNND_SIM_FAULT=torch-error:CODE:N a product of torch's: it fails with that number of
  // CUDA's.
  std::map<std::string, uint64_t> faults;
  int torch_error = 0;  // for the fault torch-error
  // GNND_SIM_FAULT_ONCE=FILE: the first fault makes the file; while it exists, none happens.
  std::string once;
  // Errors in these variables, a sentence each; the valid parts are used.
  std::vector<std::string> problems;
};

using Environment = std::function<const char*(const char*)>;

Script ReadScript(const Environment& environment, const Pose& pose = kAsSimulated);

std::string UuidOf(uint32_t device, const Pose& pose = kAsSimulated);

}  // namespace gnnd::sim
