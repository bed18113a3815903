#pragma once

#include <linux/io_uring.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "core/base/mapping.h"
#include "core/base/memfd.h"
#include "core/base/status.h"

// The small part of io_uring that reads many places of files at once, by system calls: no library
// for it is among the packages that the build may take (docs/decisions/0050).

namespace gnnd {

// For use by one thread. Move-only.
class Uring {
 public:
  Uring() = default;
  Uring(Uring&&) = default;
  Uring& operator=(Uring&&) = default;

  // Opens a ring for at most `depth` reads at once. kIo with the system's reason where the kernel
  // has no io_uring (ENOSYS), forbids it (EPERM) or has no memory for it.
  static Result<Uring> Open(uint32_t depth);

  uint32_t in_flight() const { return in_flight_; }
  bool full() const { return in_flight_ == depth_; }

  // Prepares a read into `to`, which belongs to the kernel until it ends. REQUIRES: !full().
  void Read(int file, uint64_t offset, std::span<std::byte> to, uint64_t tag);

  // Sends the prepared reads, waits until at least one has ended, and reports all that have: with
  // the bytes read or minus an errno. kIo: the kernel accepts no more. REQUIRES: in_flight() > 0.
  Status Wait(const std::function<void(uint64_t tag, int64_t result)>& ended);

 private:
  UniqueFd fd_;
  Mapping submissions_;  // the ring of indices
  Mapping entries_;      // the requests that those indices select
  Mapping completions_;
  uint32_t depth_ = 0;
  uint32_t prepared_ = 0;   // not sent yet
  uint32_t in_flight_ = 0;  // prepared reads included
  io_sqring_offsets at_{};
  io_cqring_offsets ended_at_{};
};

}  // namespace gnnd
