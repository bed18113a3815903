#pragma once

#include <cstdint>
#include <string>
#include <vector>

// NVIDIA's management library, which knows what a CUDA process cannot see: who else uses a GPU, and
// whether it is split into MIG instances. It comes with the driver and is opened when asked for;
// its header is not needed. It makes no context.

namespace gnnd::cuda {

struct GpuProcess {
  uint32_t pid;
  uint64_t bytes;
};

struct MigInstance {
  std::string uuid;
  std::string name;
  uint64_t total_bytes;  // ~0: it does not say
};

class Nvml {
 public:
  // The process's own; opened once.
  static Nvml& Get();
  // Opened from a file of another name.
  explicit Nvml(const char* library);

  // Why nothing can be asked; "" where it can.
  const std::string& problem() const { return problem_; }
  // Of the GPU with this PCI address: false where it does not say.
  bool Processes(const std::string& pci, std::vector<GpuProcess>* processes);
  bool IsMigOn(const std::string& pci, bool* is_on);
  // Its instances, those too that CUDA does not show this process; none where MIG is off.
  bool Instances(const std::string& pci, std::vector<MigInstance>* instances);
  // What lies between two GPUs: an enum gnnd_link_kind.
  bool LinkKind(const std::string& pci, const std::string& other_pci, uint32_t* kind);

 private:
  void* Find(const char* name);
  bool Handle(const std::string& pci, void** device);

  void* library_ = nullptr;
  std::string problem_;
};

}  // namespace gnnd::cuda
