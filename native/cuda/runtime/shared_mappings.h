#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "cuda/plugin/handout.h"

// Device memory that other processes may map: CUDA's driver gives a descriptor for it
// (cuMemExportToShareableHandle), and frees it when the last mapping and the last descriptor are
// gone. With cudaIpcGetMemHandle it would go with the process that made it, under the kernels of
// those who read it.

namespace gnnd::cuda {

class SharedMappings {
 public:
  // On the device in use, as everything here. Plain memory without a descriptor where driver or
  // device export none. Answers are the library's numbers; the driver's are the same.
  int Allocate(uint64_t bytes, void** memory, SharedMemory* shared);
  int Open(const SharedMemory& shared, void** memory);
  // What one of the two gave.
  int Free(void* memory);

 private:
  std::mutex mutex_;
  std::map<void*, uint64_t> mapped_;  // and their sizes; what is plain is not among them
};

}  // namespace gnnd::cuda
