#include "core/base/mapping.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cinttypes>
#include <cstdio>
#include <numeric>
#include <string>

#include "core/base/check.h"

namespace gnnd {
namespace {

constexpr int kMadvCollapse = 25;       // older C libraries lack it
constexpr int kMadvPopulateWrite = 23;  // MADV_POPULATE_WRITE, since Linux 5.14

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

Mapping::~Mapping() {
  if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
}

Result<Mapping> Mapping::Map(int fd, bool writable) {
  struct stat info{};
  if (fstat(fd, &info) != 0) return SystemError(Code::kIo, "fstat");
  Mapping mapping;
  const auto bytes = static_cast<uint64_t>(info.st_size);
  if (bytes == 0) return mapping;
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* address = mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (address == MAP_FAILED) {
    return SystemError(Code::kIo, "mmap of " + std::to_string(bytes) + " bytes");
  }
  mapping.data_ = mapping.mapped_ = static_cast<std::byte*>(address);
  mapping.size_ = mapping.mapped_bytes_ = bytes;
  return mapping;
}

Result<Mapping> Mapping::Ring(int fd, uint64_t offset, uint64_t bytes) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
                       static_cast<off_t>(offset));
  if (address == MAP_FAILED) {
    return SystemError(Code::kIo, "mmap of a ring of " + std::to_string(bytes) + " bytes");
  }
  Mapping mapping;
  mapping.data_ = mapping.mapped_ = static_cast<std::byte*>(address);
  mapping.size_ = mapping.mapped_bytes_ = bytes;
  return mapping;
}

Result<Mapping> Mapping::Stretch(int fd, uint64_t offset, uint64_t bytes, const Congruence& at) {
  // Tries consecutive pages, whose addresses run through all residues that pages can have.
  const uint64_t residues = at.modulus / std::gcd(at.modulus, kPageBytes);
  const uint64_t room = RoundUp(bytes, kPageBytes) + residues * kPageBytes;
  void* address = mmap(reinterpret_cast<void*>(at.near), room, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    return SystemError(Code::kIo, "reserving " + std::to_string(room) + " addresses");
  }
  Mapping mapping;
  mapping.mapped_ = static_cast<std::byte*>(address);
  mapping.mapped_bytes_ = room;
  std::byte* start = mapping.mapped_;
  for (uint64_t i = 0; i < residues; ++i, start += kPageBytes) {
    if (reinterpret_cast<uintptr_t>(start) % at.modulus == at.residue % at.modulus) break;
  }
  GNND_CHECK(start < mapping.mapped_ + residues * kPageBytes);
  if (mmap(start, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, static_cast<off_t>(offset)) ==
      MAP_FAILED) {
    return SystemError(Code::kIo, "mmap of a stretch of " + std::to_string(bytes) + " bytes");
  }
  mapping.data_ = start;
  mapping.size_ = bytes;
  return mapping;
}

Result<Mapping> Mapping::Anonymous(uint64_t bytes, const Reserve& reserve) {
  Mapping mapping;
  if (bytes == 0) return mapping;
  const uint64_t boundary = reserve.huge_pages ? kHugePageBytes : kPageBytes;
  const uint64_t mapped_bytes = bytes + (reserve.huge_pages ? kHugePageBytes : 0);
  void* address = mmap(reinterpret_cast<void*>(reserve.near), mapped_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    return SystemError(Code::kShmAllocationFailed, std::to_string(bytes) + " bytes of memory");
  }
  mapping.mapped_ = static_cast<std::byte*>(address);
  mapping.mapped_bytes_ = mapped_bytes;
  const auto start = reinterpret_cast<uintptr_t>(address);
  mapping.data_ = mapping.mapped_ + (RoundUp(start, boundary) - start);
  mapping.size_ = bytes;
  // A refusal leaves 4 KiB pages, which work as well.
  if (reserve.huge_pages) static_cast<void>(madvise(address, mapped_bytes, MADV_HUGEPAGE));
  return mapping;
}

Status Protect(std::span<std::byte> pages, Protection protection) {
  const int wanted = protection == Protection::kNone ? PROT_NONE : PROT_READ;
  if (pages.empty() || mprotect(pages.data(), pages.size(), wanted) == 0) return Status::Ok();
  return SystemError(Code::kIo, "protecting " + std::to_string(pages.size()) + " bytes");
}

void Advise(std::span<const std::byte> bytes, Advice advice) {
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t begin = address / kPageBytes * kPageBytes;
  static_cast<void>(madvise(reinterpret_cast<void*>(begin), address - begin + bytes.size(),
                            advice == Advice::kRandom ? MADV_RANDOM : MADV_WILLNEED));
}

Status Populate(std::span<std::byte> pages) {
  const auto address = reinterpret_cast<uintptr_t>(pages.data());
  const uintptr_t begin = address / kPageBytes * kPageBytes;
  const uint64_t bytes = address - begin + pages.size();
  if (madvise(reinterpret_cast<void*>(begin), bytes, kMadvPopulateWrite) == 0) return Status::Ok();
  const Status failed = SystemError(Code::kIo, "making " + std::to_string(bytes) + " bytes real");
  // An unknown advice and unwritable memory give the same error; a call for zero bytes fails only
  // if the kernel does not know the advice.
  const bool is_known = madvise(reinterpret_cast<void*>(begin), 0, kMadvPopulateWrite) == 0;
  return is_known ? failed : Status::Ok();
}

uint64_t CollapseToHugePages(const Mapping& mapping) {
  if (mapping.size() < kHugePageBytes) return 0;
  // A refusal (old kernel, no memory, an unaligned tail) leaves the mapping as it was.
  static_cast<void>(madvise(mapping.data(), mapping.size(), kMadvCollapse));
  return HugeBytesAt(mapping.data());
}

}  // namespace gnnd
