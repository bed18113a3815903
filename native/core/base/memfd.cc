#include "core/base/memfd.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace gnnd {
namespace {

constexpr unsigned kMfdNoexecSeal = 0x8;  // older kernel headers lack it

}  // namespace

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) close(fd_);
}

int UniqueFd::Release() { return std::exchange(fd_, -1); }

bool WriteAll(int fd, std::span<const std::byte> bytes, std::optional<uint64_t> at) {
  for (size_t done = 0; done < bytes.size();) {
    const std::span<const std::byte> rest = bytes.subspan(done);
    const ssize_t written =
        at ? pwrite(fd, rest.data(), rest.size(), static_cast<off_t>(*at + done))
           : write(fd, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    done += static_cast<size_t>(written);
  }
  return true;
}

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
  UniqueFd owner = GNND_VALUE(ReserveMemfd(label));
  GNND_TRY(SizeMemfd(owner.get(), bytes));
  return owner;
}

Status SealReadOnly(int fd) {
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
    return SystemError(Code::kShmAllocationFailed, "sealing against writes");
  }
  return Status::Ok();
}

}  // namespace gnnd
