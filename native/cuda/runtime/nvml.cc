#include "cuda/runtime/nvml.h"

#include <dlfcn.h>

namespace gnnd::cuda {
namespace {

// As nvml.h has them.
constexpr int kSuccess = 0;
constexpr int kInsufficientSize = 7;
constexpr uint64_t kNotAvailable = ~uint64_t{0};

struct ProcessInfo {  // nvmlProcessInfo_t of the functions with _v3
  unsigned int pid;
  unsigned long long used_gpu_memory;
  unsigned int gpu_instance_id;
  unsigned int compute_instance_id;
};

using Init = int (*)();
using HandleByPci = int (*)(const char* pci, void** device);
using RunningProcesses = int (*)(void* device, unsigned int* count, ProcessInfo* processes);
using MigMode = int (*)(void* device, unsigned int* current, unsigned int* pending);
using ErrorString = const char* (*)(int error);

}  // namespace

Nvml& Nvml::Get() {
  static Nvml nvml;
  return nvml;
}

Nvml::Nvml() {
  library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    const char* const said = dlerror();
    problem_ = said == nullptr ? "libnvidia-ml.so.1 cannot be loaded" : said;
    return;
  }
  const auto init = reinterpret_cast<Init>(Find("nvmlInit_v2"));
  const int error = init == nullptr ? -1 : init();
  if (error == kSuccess) return;
  const auto text = reinterpret_cast<ErrorString>(Find("nvmlErrorString"));
  problem_ = "NVML does not start: ";
  problem_ += text == nullptr || error < 0 ? "it lacks nvmlInit_v2" : text(error);
}

void* Nvml::Find(const char* name) { return dlsym(library_, name); }

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
  // Processes come and go between the calls.
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

}  // namespace gnnd::cuda
