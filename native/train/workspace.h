#pragma once

#include <cstdint>
#include <vector>

#include "core/base/mapping.h"

namespace gnnd {

// Memory of one batch, handed out by bumping an offset and taken back all at once. After the first
// batches nothing is allocated any more: large fresh buffers would be faulted in again each time,
// which costs as much as the arithmetic on them. Lies on 2 MiB pages where the kernel allows.
class Workspace {
 public:
  Workspace() = default;
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // `count` uninitialised elements on a 64-byte boundary, valid until Reset. Throws std::bad_alloc
  // (it serves torch's side, where allocation failure is an exception).
  template <typename T>
  T* Get(uint64_t count) {
    return static_cast<T*>(Allocate(count * sizeof(T)));
  }

  // Takes everything back. Several chunks become one of their total size.
  void Reset();

  uint64_t reserved_bytes() const;

 private:
  void* Allocate(uint64_t bytes);
  void AddChunk(uint64_t at_least);

  std::vector<Mapping> chunks_;  // the last one is in use
  uint64_t used_ = 0;            // of the last chunk
};

}  // namespace gnnd
