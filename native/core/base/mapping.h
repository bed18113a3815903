#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <utility>

#include "core/base/status.h"

// Memory that is mapped: files, memfds and large private arrays. The only place that maps, unmaps,
// protects or advises.

namespace gnnd {

inline constexpr uint64_t kPageBytes = 4096;
inline constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

constexpr uint64_t RoundUp(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// How an anonymous mapping is made.
struct Reserve {
  // Its first byte lies on a boundary of 2 MiB and its pages are that large where the kernel grants
  // them: randomly read tables run 1.3 to 1.6 times faster there than on 4 KiB pages.
  bool huge_pages = true;
  // Where addresses are wished for; the kernel may give others.
  uintptr_t near = 0;
};

// Which addresses will do; and where they are wished for.
struct Congruence {
  uint64_t modulus = 1;
  uint64_t residue = 0;
  uintptr_t near = 0;
};

// One mapping; unmapped when destroyed. Move-only.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept { Swap(other); }
  Mapping& operator=(Mapping&& other) noexcept {
    Swap(other);
    return *this;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  // Maps all of `fd` (its size by fstat). `writable` false maps read-only. kIo.
  static Result<Mapping> Map(int fd, bool writable);

  // A stretch of what a device has to map, shared with the kernel, read and written. kIo.
  static Result<Mapping> Ring(int fd, uint64_t offset, uint64_t bytes);

  // These bytes of `fd`, from a page on, to be read only, at an address `residue` above a multiple
  // of `modulus`, if their greatest common divisor with a page allows. Its pages are those of the
  // file wherever else that is mapped. kIo.
  static Result<Mapping> Stretch(int fd, uint64_t offset, uint64_t bytes, const Congruence& at);

  // Zeroed private memory, reserved and not touched: costs what is written. kShmAllocationFailed.
  static Result<Mapping> Anonymous(uint64_t bytes, const Reserve& reserve = {});

  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  void Swap(Mapping& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(mapped_, other.mapped_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
  }

  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
  std::byte* mapped_ = nullptr;  // what the kernel gave, from which `data_` is cut
  uint64_t mapped_bytes_ = 0;
};

// Anonymous memory for those who answer a lack of it with an exception, as containers do.
inline Mapping AnonymousOrThrow(uint64_t bytes, const Reserve& reserve = {}) {
  Result<Mapping> mapping = Mapping::Anonymous(bytes, reserve);
  if (!mapping.ok()) throw std::bad_alloc();
  return std::move(*mapping);
}

enum class Protection { kNone, kReadOnly };

// What the pages that hold these bytes may be used for from now on, in this process. kIo.
Status Protect(std::span<std::byte> pages, Protection protection);

enum class Advice {
  kRandom,    // reads will come in no order
  kWillNeed,  // reads will come soon
};

// For the pages that hold these bytes. Advice is advice: a kernel that refuses works as before.
void Advise(std::span<const std::byte> bytes, Advice advice);

// Makes the pages that hold these bytes real, as pinning them would: kIo where they may not be
// written. Changes nothing in them. A kernel that cannot do this (before 5.14) answers as if it
// had.
Status Populate(std::span<std::byte> pages);

// Asks the kernel to put the mapping on 2 MiB pages (MADV_COLLAPSE); returns how many of its bytes
// are on huge pages afterwards. Never fails: a kernel that refuses leaves 4 KiB pages and 0.
uint64_t CollapseToHugePages(const Mapping& mapping);

}  // namespace gnnd
