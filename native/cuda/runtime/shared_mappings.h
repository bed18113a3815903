#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "cuda/plugin/handout.h"

// Device memory that other processes may map: CUDA's driver gives a descriptor for it
// (cuMemExportToShareableHandle), and frees it when the last mapping and the last descriptor are
// gone. Memory shared by cudaIpcGetMemHandle would vanish with the process that made it, under the
// kernels of its readers.

namespace gnnd::cuda {

class SharedMappings {
 public:
  // Allocates on the current device. Returns plain memory without a descriptor if driver or device
  // export none. Results are the library's numbers; the driver's are the same.
  int Allocate(uint64_t bytes, void** memory, SharedMemory* shared);
  int Open(const SharedMemory& shared, void** memory);
  // Frees memory that Allocate or Open returned.
  int Free(void* memory);

 private:
  std::mutex mutex_;
  std::map<void*, uint64_t> mapped_;  // sizes; plain memory is not listed
};

}  // namespace gnnd::cuda
