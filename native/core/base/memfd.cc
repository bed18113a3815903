#include "core/base/memfd.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace gnnd {
namespace {

constexpr unsigned kMfdNoexecSeal = 0x8;  // older kernel headers lack it

Status SystemError(Code code, const std::string& what) {
  return Status(code, what + ": " + std::strerror(errno));
}

}  // namespace

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) close(fd_);
}

int UniqueFd::Release() { return std::exchange(fd_, -1); }

Result<UniqueFd> ReserveMemfd(const std::string& label) {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  int fd = memfd_create(label.c_str(), kFlags | kMfdNoexecSeal);
  if (fd < 0 && errno == EINVAL) fd = memfd_create(label.c_str(), kFlags);
  if (fd < 0) return SystemError(Code::kShmAllocationFailed, "memfd_create");
  return UniqueFd(fd);
}

Status SizeMemfd(int fd, uint64_t bytes) {
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    return SystemError(Code::kShmAllocationFailed, "ftruncate to " + std::to_string(bytes));
  }
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    return SystemError(Code::kShmAllocationFailed, "sealing the size");
  }
  return Status::Ok();
}

Result<UniqueFd> CreateMemfd(const std::string& label, uint64_t bytes) {
  Result<UniqueFd> owner = ReserveMemfd(label);
  if (!owner.ok()) return owner.status();
  GNND_TRY(SizeMemfd(owner->get(), bytes));
  return owner;
}

Status SealReadOnly(int fd) {
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
    return SystemError(Code::kShmAllocationFailed, "sealing against writes");
  }
  return Status::Ok();
}

}  // namespace gnnd
