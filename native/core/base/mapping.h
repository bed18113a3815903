#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <utility>

#include "core/base/status.h"

// Mapped memory: files, memfds and large private arrays. Only this module maps, unmaps, protects or
// advises.

namespace gnnd {

inline constexpr uint64_t kPageBytes = 4096;
inline constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

constexpr uint64_t RoundUp(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Options of an anonymous mapping.
struct Reserve {
  // The first byte lies on a 2 MiB boundary and pages are that large where the kernel grants them:
  // randomly read tables run 1.3 to 1.6 times faster there than on 4 KiB pages.
  bool huge_pages = true;
  // The wished-for address; the kernel may choose another.
  uintptr_t near = 0;
};

// The addresses that a mapping may have (`residue` modulo `modulus`), and the one wished for.
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

  // Maps one of io_uring's rings, shared with the kernel, for reading and writing. kIo.
  static Result<Mapping> Ring(int fd, uint64_t offset, uint64_t bytes);

  // Maps `bytes` of `fd` from `offset` (a multiple of a page) read-only, at an address congruent to
  // `residue` modulo `modulus` if their greatest common divisor with the page size allows it. The
  // pages are shared with every other mapping of the file. kIo.
  static Result<Mapping> Stretch(int fd, uint64_t offset, uint64_t bytes, const Congruence& at);

  // Zeroed private memory; only pages that are written cost memory. kShmAllocationFailed.
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
  std::byte* mapped_ = nullptr;  // the kernel's mapping, of which `data_` is a part
  uint64_t mapped_bytes_ = 0;
};

// Anonymous memory for callers that, like containers, answer a lack of it with an exception.
inline Mapping AnonymousOrThrow(uint64_t bytes, const Reserve& reserve = {}) {
  Result<Mapping> mapping = Mapping::Anonymous(bytes, reserve);
  if (!mapping.ok()) throw std::bad_alloc();
  return std::move(*mapping);
}

enum class Protection { kNone, kReadOnly };

// Sets which accesses this process may make to the pages that hold these bytes. kIo.
Status Protect(std::span<std::byte> pages, Protection protection);

enum class Advice {
  kRandom,    // reads will come in no order
  kWillNeed,  // reads will come soon
};

// Advises the kernel about the pages that hold these bytes. A refusal changes nothing.
void Advise(std::span<const std::byte> bytes, Advice advice);

// Allocates the pages that hold these bytes, as pinning them would, without changing their content.
// kIo where they may not be written. A kernel that cannot do this (before 5.14) answers Ok.
Status Populate(std::span<std::byte> pages);

// Asks the kernel to put the mapping on 2 MiB pages (MADV_COLLAPSE); returns how many of its bytes
// are on huge pages afterwards. Never fails: a kernel that refuses leaves 4 KiB pages and 0.
uint64_t CollapseToHugePages(const Mapping& mapping);

}  // namespace gnnd
