#include "core/base/memfd.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <utility>

namespace gnnd {
namespace {

// Older C libraries and kernel headers lack these two.
constexpr unsigned kMfdNoexecSeal = 0x8;
constexpr int kMadvCollapse = 25;
constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

Status SystemError(Code code, const std::string& what) {
  return Status(code, what + ": " + std::strerror(errno));
}

// Sum of the huge-page fields of the smaps entry that starts at `address`.
uint64_t HugeBytesAt(const void* address) {
  std::FILE* smaps = std::fopen("/proc/self/smaps", "re");
  if (smaps == nullptr) return 0;
  char line[512];
  bool inside = false;
  uint64_t total_kib = 0;
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  while (std::fgets(line, sizeof line, smaps) != nullptr) {
    uintptr_t from = 0;
    uintptr_t to = 0;
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2) {
      inside = from == wanted;
      continue;
    }
    uint64_t kib = 0;
    if (inside && (std::sscanf(line, "ShmemPmdMapped: %" SCNu64, &kib) == 1 ||
                   std::sscanf(line, "AnonHugePages: %" SCNu64, &kib) == 1)) {
      total_kib += kib;
    }
  }
  std::fclose(smaps);
  return total_kib * 1024;
}

}  // namespace

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, size_);
}

Result<Mapping> Mapping::Map(int fd, bool writable) {
  struct stat info{};
  if (fstat(fd, &info) != 0) return SystemError(Code::kIo, "fstat");
  Mapping mapping;
  mapping.size_ = static_cast<uint64_t>(info.st_size);
  if (mapping.size_ == 0) return mapping;
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* address = mmap(nullptr, mapping.size_, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (address == MAP_FAILED) {
    return SystemError(Code::kIo, "mmap of " + std::to_string(mapping.size_) + " bytes");
  }
  mapping.data_ = static_cast<std::byte*>(address);
  return mapping;
}

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

uint64_t CollapseToHugePages(const Mapping& mapping) {
  if (mapping.size() < kHugePageBytes) return 0;
  // A refusal (old kernel, no memory, an unaligned tail) leaves the mapping as it was.
  static_cast<void>(madvise(mapping.data(), mapping.size(), kMadvCollapse));
  return HugeBytesAt(mapping.data());
}

}  // namespace gnnd
