#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/mapping.h"
#include "core/base/registrar.h"

namespace gnnd::test {

// Whether this process may write there now.
inline bool IsWritable(const void* address) {
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  GNND_CHECK(maps != nullptr);
  const auto at = reinterpret_cast<uintptr_t>(address);
  bool writable = false;
  char line[512];
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    uintptr_t from = 0;
    uintptr_t to = 0;
    char mode[5] = {};
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, mode) != 3) continue;
    if (from <= at && at < to) writable = mode[1] == 'w';
  }
  std::fclose(maps);
  return writable;
}

// A device that registers memory as a driver does: it takes hold of pages, which become real, and
// goes on seeing those very pages whatever happens to the mapping. It refuses what a driver does:
// parts of pages, what overlaps, what is not mapped or not for writing.
class FakeRegistrar {
 public:
  FakeRegistrar() = default;
  FakeRegistrar(const FakeRegistrar&) = delete;
  FakeRegistrar& operator=(const FakeRegistrar&) = delete;
  ~FakeRegistrar() {
    while (!pages_.empty()) Drop(pages_.begin()->first);
  }

  Registrar hook() {
    Registrar hook;
    hook.context = this;
    hook.add = [](void* self, std::span<std::byte> pages, std::byte** seen) {
      auto* const device = static_cast<FakeRegistrar*>(self);
      *seen = device->SeenAt(pages.data());
      return device->Add(pages);
    };
    hook.remove = [](void* self, std::span<std::byte> pages) {
      static_cast<FakeRegistrar*>(self)->Remove(pages);
    };
    hook.most_bytes = most_bytes;
    return hook;
  }

  // Other addresses than the process's own, as a device without unified ones has.
  static constexpr uintptr_t kSeenAway = uintptr_t{1} << 52;
  std::byte* SeenAt(std::byte* at) const {
    if (scatters) return reinterpret_cast<std::byte*>(kSeenAway * (2 + ranges.size()));
    return reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(at) + kSeenAway);
  }

  bool scatters = false;  // kernels see each range somewhere else
  uint64_t most_bytes = uint64_t{1} << 30;
  uint64_t refuses_after = ~uint64_t{0};  // calls
  std::vector<std::span<std::byte>> ranges;
  uint64_t bytes() const {
    uint64_t bytes = 0;
    for (const auto& range : ranges) bytes += range.size();
    return bytes;
  }

  // The byte that the device reads there, for the first kWatched pages of a range.
  std::byte Sees(const std::byte* at) const {
    const auto address = reinterpret_cast<uintptr_t>(at);
    const auto page = pages_.find(address / kPageBytes * kPageBytes);
    GNND_CHECK(page != pages_.end());
    int peek[2];
    GNND_CHECK(pipe2(peek, O_CLOEXEC) == 0);
    GNND_CHECK(tee(page->second.first, peek[1], kPageBytes, 0) == kPageBytes);
    std::vector<std::byte> content(kPageBytes);
    GNND_CHECK(read(peek[0], content.data(), kPageBytes) == kPageBytes);
    close(peek[0]);
    close(peek[1]);
    return content[address % kPageBytes];
  }

 private:
  static constexpr uint64_t kWatched = 16;

  Status Add(std::span<std::byte> range) {
    const auto refused = [](const std::string& why) { return Status(Code::kInvalidArgument, why); };
    if (ranges.size() >= refuses_after) return refused("not supported");
    const auto begin = reinterpret_cast<uintptr_t>(range.data());
    if (begin % kPageBytes != 0 || range.size() % kPageBytes != 0 || range.empty()) {
      return refused("not whole pages");
    }
    for (const auto& other : ranges) {
      const auto from = reinterpret_cast<uintptr_t>(other.data());
      if (begin < from + other.size() && from < begin + range.size()) return refused("overlap");
    }
    for (uint64_t at = 0; at < range.size(); at += kPageBytes) {
      if (at < kWatched * kPageBytes && !IsWritable(range.data() + at)) {
        return refused("not mapped for writing");
      }
    }
    // Touches every page without changing it; needs Linux 5.14.
    constexpr int kPopulateWrite = 23;
    if (madvise(range.data(), range.size(), kPopulateWrite) != 0) return refused("a hole");
    ranges.push_back(range);
    for (uint64_t at = 0; at < std::min(range.size(), kWatched * kPageBytes); at += kPageBytes) {
      Hold(begin + at);
    }
    return Status::Ok();
  }

  void Remove(std::span<std::byte> range) {
    const auto same = [&](const auto& other) {
      return other.data() == range.data() && other.size() == range.size();
    };
    const auto found = std::find_if(ranges.begin(), ranges.end(), same);
    GNND_CHECK(found != ranges.end());
    GNND_CHECK(found == ranges.end() - 1);  // the last one first
    // Still mapped: the device may have been at it until now.
    GNND_CHECK(msync(range.data(), range.size(), MS_ASYNC) == 0);
    const auto begin = reinterpret_cast<uintptr_t>(range.data());
    for (uint64_t at = 0; at < std::min(range.size(), kWatched * kPageBytes); at += kPageBytes) {
      Drop(begin + at);
    }
    ranges.erase(found);
  }

  // A pipe holds the page itself, not its content.
  void Hold(uintptr_t page) {
    int ends[2];
    GNND_CHECK(pipe2(ends, O_CLOEXEC) == 0);
    const iovec whole{reinterpret_cast<void*>(page), kPageBytes};
    GNND_CHECK(vmsplice(ends[1], &whole, 1, 0) == kPageBytes);
    pages_[page] = {ends[0], ends[1]};
  }

  void Drop(uintptr_t page) {
    const auto [out, in] = pages_.at(page);
    close(out);
    close(in);
    pages_.erase(page);
  }

  std::map<uintptr_t, std::pair<int, int>> pages_;
};

}  // namespace gnnd::test
