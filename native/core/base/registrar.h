#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/base/status.h"

// Memory that a device reads and writes by itself (DMA, loads over the bus) is *registered* with
// it: its pages are allocated and stay where they are. A hole punched under them would silently
// send the device's writes astray, so registered memory is never punched, collapsed or sealed.
//
// Only memory that is mapped for writing can be registered, on x86 at least: map, register, and
// then protect, which leaves the registration as it is.

namespace gnnd {

// A device's functions to register memory. CPU devices have none.
struct Registrar {
  void* context = nullptr;
  // Registers whole pages that are mapped for writing and not registered yet; `seen` gets the
  // address at which the device's kernels see them.
  Status (*add)(void* context, std::span<std::byte> pages, std::byte** seen) = nullptr;
  // Ends the registration of a range that was added and is still mapped.
  void (*remove)(void* context, std::span<std::byte> pages) = nullptr;
  // Largest range added at once; some hosts refuse over some 100 GiB, but take it in pieces.
  uint64_t most_bytes = uint64_t{1} << 30;
};

// Registered ranges. Destroying the object ends the registration, which must happen before the
// ranges are unmapped. Move-only.
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

  // Registers all ranges or none; the error is that of the refused range and gives its size.
  static Result<Registration> Of(const Registrar& registrar,
                                 std::span<const std::span<std::byte>> ranges);

  uint64_t bytes() const { return bytes_; }
  // Address at which the device's kernels see the registered memory if it is one range and they see
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
