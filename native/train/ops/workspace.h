#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/mapping.h"
#include "train/ops/device.h"

namespace gnnd {

// Memory of one batch on the device that computes it, allocated by bumping an offset and freed all
// at once. After the first batches nothing is allocated any more: large fresh buffers would fault
// their pages in each time, which costs as much as the arithmetic on them. Lies on 2 MiB pages
// where the kernel allows.
class Workspace {
 public:
  explicit Workspace(const TrainDevice& device = CpuDevice()) : device_(&device) {}
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // `count` uninitialised elements on a 64-byte boundary, valid until Reset. Throws std::bad_alloc
  // (it serves torch's side, where allocation failure is an exception).
  template <typename T>
  T* Get(uint64_t count) {
    return static_cast<T*>(Allocate(count * sizeof(T)));
  }

  // Frees everything. Several chunks become one of their total size.
  void Reset();
  // Reset, with room for at least `bytes`.
  void Reserve(uint64_t bytes);

  uint64_t reserved_bytes() const;

  const TrainDevice& device() const { return *device_; }
  // The operators that compute on this memory.
  const Operators& operators() const { return *device_->operators; }

 private:
  struct Chunk {
    std::byte* data = nullptr;
    uint64_t bytes = 0;
    Mapping host;  // if the memory is the host's
  };

  void Free();
  void* Allocate(uint64_t bytes);
  void AddChunk(uint64_t at_least);

  const TrainDevice* device_;
  std::vector<Chunk> chunks_;  // the last one is in use
  uint64_t used_ = 0;          // bytes used of the last chunk
};

}  // namespace gnnd
