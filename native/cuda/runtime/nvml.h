#pragma once

#include <cstdint>
#include <string>
#include <vector>

// NVIDIA's management library, which knows two things that a CUDA process cannot see: the other
// users of a GPU, and its MIG instances. It comes with the driver and is opened when it is needed;
// its header is not used. It makes no context.

namespace gnnd::cuda {

struct GpuProcess {
  uint32_t pid;
  uint64_t bytes;
};

struct MigInstance {
  std::string uuid;
  std::string name;
  uint64_t total_bytes;  // ~0: unknown
};

class Nvml {
 public:
  // The process's own object; opened once.
  static Nvml& Get();
  // Opens a file of another name.
  explicit Nvml(const char* library);

  // The reason why nothing can be asked; "" if it can.
  const std::string& problem() const { return problem_; }
  // The processes on the GPU with this PCI address; false if the library does not say.
  bool Processes(const std::string& pci, std::vector<GpuProcess>* processes);
  bool IsMigOn(const std::string& pci, bool* is_on);
  // The GPU's MIG instances, even those that CUDA hides from this process; none if MIG is off.
  bool Instances(const std::string& pci, std::vector<MigInstance>* instances);
  // The link between two GPUs: an enum gnnd_link_kind.
  bool LinkKind(const std::string& pci, const std::string& other_pci, uint32_t* kind);

 private:
  void* Find(const char* name);
  bool Handle(const std::string& pci, void** device);

  void* library_ = nullptr;
  std::string problem_;
};

}  // namespace gnnd::cuda
