#include "cuda/runtime/nvml.h"

#include <dlfcn.h>

#include "include/gnnd/device_plugin.h"

namespace gnnd::cuda {
namespace {

// Constants and structs of nvml.h.
constexpr int kSuccess = 0;
constexpr int kInsufficientSize = 7;
constexpr uint64_t kNotAvailable = ~uint64_t{0};
constexpr int kPeersOverNvlink = 2;  // NVML_P2P_CAPS_INDEX_NVLINK
constexpr int kPeersOk = 0;          // NVML_P2P_STATUS_OK
constexpr int kWithinNode = 40;      // NVML_TOPOLOGY_NODE; beyond it lies the whole system

struct ProcessInfo {  // nvmlProcessInfo_t as functions with _v3 have it
  unsigned int pid;
  unsigned long long used_gpu_memory;
  unsigned int gpu_instance_id;
  unsigned int compute_instance_id;
};

struct MemoryInfo {  // nvmlMemory_t
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

using Memory = int (*)(void* device, MemoryInfo* info);
using Init = int (*)();
using HandleByPci = int (*)(const char* pci, void** device);
using RunningProcesses = int (*)(void* device, unsigned int* count, ProcessInfo* processes);
using MigMode = int (*)(void* device, unsigned int* current, unsigned int* pending);
using MaxMigCount = int (*)(void* device, unsigned int* count);
using MigHandle = int (*)(void* device, unsigned int index, void** instance);
using PeerStatus = int (*)(void* device, void* other, int what, int* status);
using CommonAncestor = int (*)(void* device, void* other, int* level);
using DeviceText = int (*)(void* device, char* text, unsigned int bytes);
using ErrorString = const char* (*)(int error);

}  // namespace

Nvml& Nvml::Get() {
  static Nvml nvml("libnvidia-ml.so.1");
  return nvml;
}

Nvml::Nvml(const char* library) {
  library_ = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    const char* const said = dlerror();
    problem_ = said == nullptr ? std::string(library) + " cannot be loaded" : said;
    return;
  }
  const auto init = reinterpret_cast<Init>(Find("nvmlInit_v2"));
  const int error = init == nullptr ? -1 : init();
  if (error == kSuccess) return;
  const auto text = reinterpret_cast<ErrorString>(Find("nvmlErrorString"));
  problem_ = "NVML does not start: ";
  problem_ += text == nullptr || error < 0 ? "it lacks nvmlInit_v2" : text(error);
}

void* Nvml::Find(const char* name) { return library_ == nullptr ? nullptr : dlsym(library_, name); }

bool Nvml::Handle(const std::string& pci, void** device) {
  if (!problem_.empty()) return false;
  const auto find = reinterpret_cast<HandleByPci>(Find("nvmlDeviceGetHandleByPciBusId_v2"));
  return find != nullptr && find(pci.c_str(), device) == kSuccess;
}

bool Nvml::Processes(const std::string& pci, std::vector<GpuProcess>* processes) {
  void* device = nullptr;
  const auto list =
      reinterpret_cast<RunningProcesses>(Find("nvmlDeviceGetComputeRunningProcesses_v3"));
  if (list == nullptr || !Handle(pci, &device)) return false;
  std::vector<ProcessInfo> found(64);
  int error = kInsufficientSize;
  // Tries again, because processes come and go between the calls.
  for (int attempt = 0; attempt < 4 && error == kInsufficientSize; ++attempt) {
    auto count = static_cast<unsigned int>(found.size());
    error = list(device, &count, found.data());
    found.resize(error == kInsufficientSize ? count + 16 : count);
  }
  if (error != kSuccess) return false;
  processes->clear();
  for (const ProcessInfo& info : found) {
    const uint64_t bytes = info.used_gpu_memory;
    processes->push_back({info.pid, bytes == kNotAvailable ? kNotAvailable : bytes});
  }
  return true;
}

bool Nvml::IsMigOn(const std::string& pci, bool* is_on) {
  void* device = nullptr;
  const auto mode = reinterpret_cast<MigMode>(Find("nvmlDeviceGetMigMode"));
  if (mode == nullptr || !Handle(pci, &device)) return false;
  unsigned int current = 0;
  unsigned int pending = 0;
  if (mode(device, &current, &pending) != kSuccess) return false;
  *is_on = current == 1;
  return true;
}

bool Nvml::LinkKind(const std::string& pci, const std::string& other_pci, uint32_t* kind) {
  void* device = nullptr;
  void* other = nullptr;
  if (!Handle(pci, &device) || !Handle(other_pci, &other)) return false;
  const auto peers = reinterpret_cast<PeerStatus>(Find("nvmlDeviceGetP2PStatus"));
  int status = -1;
  if (peers != nullptr && peers(device, other, kPeersOverNvlink, &status) == kSuccess &&
      status == kPeersOk) {
    *kind = GNND_LINK_NVLINK;
    return true;
  }
  const auto ancestor =
      reinterpret_cast<CommonAncestor>(Find("nvmlDeviceGetTopologyCommonAncestor"));
  int level = 0;
  if (ancestor == nullptr || ancestor(device, other, &level) != kSuccess) return false;
  *kind = level <= kWithinNode ? GNND_LINK_PCIE : GNND_LINK_HOST_BUS;
  return true;
}

bool Nvml::Instances(const std::string& pci, std::vector<MigInstance>* instances) {
  void* device = nullptr;
  const auto count_of = reinterpret_cast<MaxMigCount>(Find("nvmlDeviceGetMaxMigDeviceCount"));
  const auto handle_of = reinterpret_cast<MigHandle>(Find("nvmlDeviceGetMigDeviceHandleByIndex"));
  const auto uuid_of = reinterpret_cast<DeviceText>(Find("nvmlDeviceGetUUID"));
  const auto name_of = reinterpret_cast<DeviceText>(Find("nvmlDeviceGetName"));
  const auto memory_of = reinterpret_cast<Memory>(Find("nvmlDeviceGetMemoryInfo"));
  if (count_of == nullptr || handle_of == nullptr || uuid_of == nullptr || name_of == nullptr ||
      memory_of == nullptr || !Handle(pci, &device)) {
    return false;
  }
  instances->clear();
  unsigned int most = 0;
  if (count_of(device, &most) != kSuccess) return true;  // it cannot have instances
  for (unsigned int k = 0; k < most; ++k) {
    void* instance = nullptr;
    char uuid[96] = "";
    char name[96] = "";
    // Some numbers in between have no instance.
    if (handle_of(device, k, &instance) != kSuccess) continue;
    if (uuid_of(instance, uuid, sizeof uuid) != kSuccess) continue;
    static_cast<void>(name_of(instance, name, sizeof name));
    MemoryInfo memory{};
    const bool is_known = memory_of(instance, &memory) == kSuccess;
    instances->push_back({uuid, name, is_known ? memory.total : kNotAvailable});
  }
  return true;
}

}  // namespace gnnd::cuda
