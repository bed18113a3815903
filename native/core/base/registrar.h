#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/base/status.h"

// Memory that a device reads and writes by itself (DMA, loads over the bus) is *registered* with
// it: its pages become real and stay where they are. A hole punched under them would send what the
// device writes astray without a word, so what is registered is never punched, collapsed or sealed.
//
// Only memory that is mapped for writing can be registered, on x86 at least: map, register, and
// then protect, which leaves the registration as it is.

namespace gnnd {

// How a device is told. CPU devices have none.
struct Registrar {
  void* context = nullptr;
  // Whole pages, mapped for writing and not yet registered; `seen` gets the address under which
  // the device's kernels see them.
  Status (*add)(void* context, std::span<std::byte> pages, std::byte** seen) = nullptr;
  // A range that was added, while it is still mapped.
  void (*remove)(void* context, std::span<std::byte> pages) = nullptr;
  // The most that is added at once; some hosts refuse more than some 100 GiB, and take pieces.
  uint64_t most_bytes = uint64_t{1} << 30;
};

// Ranges that are registered; no longer when destroyed, which must be before they are unmapped.
// Move-only.
class Registration {
 public:
  Registration() = default;
  Registration(Registration&& other) noexcept { Swap(other); }
  Registration& operator=(Registration&& other) noexcept {
    Swap(other);
    return *this;
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  ~Registration();

  // All of the ranges, or none: then the error of the one that was refused, with its size.
  static Result<Registration> Of(const Registrar& registrar,
                                 std::span<const std::span<std::byte>> ranges);

  uint64_t bytes() const { return bytes_; }
  // Where the device's kernels see all of what was registered, if that was one range and they see
  // it as one; else null.
  std::byte* seen() const { return seen_; }

 private:
  void Swap(Registration& other) {
    std::swap(registrar_, other.registrar_);
    std::swap(pieces_, other.pieces_);
    std::swap(bytes_, other.bytes_);
    std::swap(seen_, other.seen_);
  }

  Registrar registrar_;
  std::vector<std::span<std::byte>> pieces_;
  uint64_t bytes_ = 0;
  std::byte* seen_ = nullptr;
};

}  // namespace gnnd
