#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/base/mapping.h"
#include "core/base/status.h"

// Anonymous shared memory. A memfd has no name, so it cannot leak: it is gone with the last process
// that holds its descriptor or a mapping.

namespace gnnd {

// A file descriptor, closed when destroyed. Move-only.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd();

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release();

 private:
  int fd_ = -1;
};

// Writes all of `bytes`, at offset `at` or at the file's position. False, with errno set, on
// failure.
bool WriteAll(int fd, std::span<const std::byte> bytes, std::optional<uint64_t> at = std::nullopt);

// Creates an empty memfd, close-on-exec, for SizeMemfd. `label` shows in /proc/PID/maps only.
// kShmAllocationFailed names the failed call and errno.
Result<UniqueFd> ReserveMemfd(const std::string& label);

// Gives an empty memfd `bytes` (sparse), seals it against shrinking and growing. Errors as above.
Status SizeMemfd(int fd, uint64_t bytes);

// Creates a memfd of `bytes` (sparse), close-on-exec, sealed against shrinking and growing.
// `label` shows in /proc/PID/maps only. kShmAllocationFailed names the failed call and errno.
Result<UniqueFd> CreateMemfd(const std::string& label, uint64_t bytes);

// Forbids every further write through new mappings or write(2). Existing writable mappings must be
// gone first (the kernel answers EBUSY otherwise).
Status SealReadOnly(int fd);

}  // namespace gnnd
