#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace gnnd::sim {

// As what devices show themselves: as simulated ones, or under the name, the kind of UUID and the
// environment's variable of CUDA's, so that all that asks for GPUs may be tried without any.
struct Pose {
  const char* name;
  const char* visible;  // names the devices that a process sees, by UUID, in this order
  const char* uuid;     // what UUIDs begin with
  uint32_t architecture;
};
inline constexpr Pose kAsSimulated = {"sim", "GNND_SIM_VISIBLE", "SIM", 0};
inline constexpr Pose kAsCuda = {"cuda", "CUDA_VISIBLE_DEVICES", "GPU", 90};

// Of this plug-in (pose/).
const Pose& ThePose();

// Which simulated devices there are, and what befalls them: read from the environment.
struct Script {
  uint32_t devices = 1;                       // GNND_SIM_DEVICES, up to 64
  uint64_t memory_bytes = uint64_t{1} << 30;  // GNND_SIM_MEMORY, of each
  uint64_t random_seed = 1;                   // GNND_SIM_SEED
  // GNND_SIM_RESERVE: what a product of torch's takes of a device's memory, once and without
  // anybody asking, as cuBLAS's workspace and loaded kernels do on a GPU. Where it is not there,
  // the product finds no memory.
  uint64_t reserve_bytes = 0;
  uint32_t processes = 0;  // GNND_SIM_PROCESSES, strangers on each device
  int system_error = 0;    // GNND_SIM_SYSTEM, a number of CUDA's: why there are no devices
  // GNND_SIM_KIND, an enum gnnd_memory_kind that devices say they have: with GNND_MEMORY_DEVICE
  // torch is asked for CUDA, as on a GPU.
  uint32_t memory_kind = 2;
  // The devices that this process sees, by Pose::visible; all where that is not set.
  std::vector<uint32_t> visible;
  // GNND_SIM_PEERS=A-B:KIND[,...]: these two reach each other's memory, over NVLINK, PCIE or
  // HOST_BUS: kernels read what the other one shares.
  struct Peers {
    uint32_t a = 0;
    uint32_t b = 0;
    uint32_t kind = 0;  // enum gnnd_link_kind
    bool operator==(const Peers&) const = default;
  };
  std::vector<Peers> peers;
  // GNND_SIM_RATES=WAY:N[,...]: what a device reads a second, in GB, of another's memory over
  // NVLINK, PCIE or HOST_BUS and of the HOST's. Told, never waited for. By gnnd_link_kind; 0: the
  // host's.
  std::array<uint64_t, 4> rates = {10, 50, 12, 8};
  // GNND_SIM_FAULT=KIND:N[,KIND:N]: befalls the N-th call of its sort, from 1:
  //   memory    an allocation of device memory fails
  //   register  registering host memory is refused
  //   launch    a copy, fill or kernel faults as it runs
  //   lost      likewise, and the device is gone
  //   torch-memory  torch finds no memory for a product
  // and GNND_SIM_FAULT=torch-error:CODE:N a product of torch's: it fails with that number of
  // CUDA's.
  std::map<std::string, uint64_t> faults;
  int torch_error = 0;  // of the fault torch-error
  // GNND_SIM_FAULT_ONCE=FILE: the first fault makes the file; while it is there, none happens.
  std::string once;
  // What could not be read, a sentence each; the rest stands.
  std::vector<std::string> problems;
};

using Environment = std::function<const char*(const char*)>;

Script ReadScript(const Environment& environment, const Pose& pose = kAsSimulated);

std::string UuidOf(uint32_t device, const Pose& pose = kAsSimulated);

}  // namespace gnnd::sim
