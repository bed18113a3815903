#pragma once

#include <cstdint>

#include "core/base/mapping.h"

namespace gnnd {

// Zeroed private memory on 2 MiB pages where the kernel grants them. It is reserved but not
// touched, so only written pages cost memory. Move-only.
template <typename T>
class HugeArray {
 public:
  HugeArray() = default;
  // Throws std::bad_alloc, as containers do.
  explicit HugeArray(uint64_t size) : memory_(AnonymousOrThrow(size * sizeof(T))) {}

  T* data() { return reinterpret_cast<T*>(memory_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(memory_.data()); }
  uint64_t size() const { return memory_.size() / sizeof(T); }
  T& operator[](uint64_t index) { return data()[index]; }
  const T& operator[](uint64_t index) const { return data()[index]; }

 private:
  Mapping memory_;
};

}  // namespace gnnd
