#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace gnnd {

// Zeroed private memory on 2 MiB pages where the kernel grants them: randomly read tables run 1.3
// to 1.6 times faster there than on 4 KiB pages. Reserved, not touched: costs what is written.
// Move-only.
template <typename T>
class HugeArray {
 public:
  HugeArray() = default;
  // Throws std::bad_alloc, as containers do.
  explicit HugeArray(uint64_t size) : size_(size) {
    if (size == 0) return;
    mapped_bytes_ = size * sizeof(T) + kPageBytes;
    void* address = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) throw std::bad_alloc();
    mapped_ = static_cast<std::byte*>(address);
    // A refusal leaves 4 KiB pages, which work as well.
    static_cast<void>(madvise(mapped_, mapped_bytes_, MADV_HUGEPAGE));
    const auto start = reinterpret_cast<uintptr_t>(mapped_);
    const uint64_t skip = (kPageBytes - start % kPageBytes) % kPageBytes;
    data_ = reinterpret_cast<T*>(mapped_ + skip);
  }
  HugeArray(HugeArray&& other) noexcept { Swap(other); }
  HugeArray& operator=(HugeArray&& other) noexcept {
    Swap(other);
    return *this;
  }
  HugeArray(const HugeArray&) = delete;
  HugeArray& operator=(const HugeArray&) = delete;
  ~HugeArray() {
    if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  uint64_t size() const { return size_; }
  T& operator[](uint64_t index) { return data_[index]; }
  const T& operator[](uint64_t index) const { return data_[index]; }

 private:
  static constexpr uint64_t kPageBytes = uint64_t{2} << 20;

  void Swap(HugeArray& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(mapped_, other.mapped_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
  }

  T* data_ = nullptr;
  uint64_t size_ = 0;
  std::byte* mapped_ = nullptr;
  uint64_t mapped_bytes_ = 0;
};

}  // namespace gnnd
