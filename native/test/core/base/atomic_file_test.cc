#include "core/base/atomic_file.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "core/base/mapping.h"
#include "test/support/npy_files.h"

namespace gnnd {
namespace {

// Calls of write(2) by this process so far; 0 where the kernel does not count them.
uint64_t WritesSoFar() {
  std::ifstream io("/proc/self/io");
  for (std::string name; io >> name;) {
    uint64_t value = 0;
    io >> value;
    if (name == "syscw:") return value;
  }
  return 0;
}

std::vector<std::byte> Bytes(uint64_t count) {
  std::vector<std::byte> bytes(count);
  for (uint64_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 2654435761U >> 11);
  return bytes;
}

}  // namespace

TEST_CASE("a file holds what was written, in whole 2 MiB, whatever pieces it came in") {
  const test::TempFolder folder;
  const std::string path = folder / "file";
  const std::vector<std::byte> bytes = Bytes(4 * kHugePageBytes + 4096 + 17);
  bool is_first = true;
  for (const uint64_t piece : {uint64_t{100'003}, uint64_t{100'003}, kHugePageBytes - 4096,
                               kHugePageBytes, 2 * kHugePageBytes + 4096, uint64_t{bytes.size()}}) {
    CAPTURE(piece);
    const uint64_t before = WritesSoFar();
    {
      AtomicFile file(path);
      REQUIRE(file.Create().ok());
      REQUIRE(file.Write(std::span(bytes).first(4096)).ok());
      for (uint64_t at = 4096; at < bytes.size(); at += piece) {
        const uint64_t count = std::min<uint64_t>(piece, bytes.size() - at);
        REQUIRE(file.Write(std::span(bytes).subspan(at, count)).ok());
      }
      CHECK_FALSE(std::filesystem::exists(path));
      REQUIRE(file.Commit().ok());
    }
    // At most one write for each 2 MiB, and one for the rest; a sanitizer writes to a pipe when it
    // first looks at a type.
    if (before > 0 && !is_first) CHECK(WritesSoFar() - before <= 5);
    const std::string found = test::ReadFile(path);
    REQUIRE(found.size() == bytes.size());
    CHECK(std::memcmp(found.data(), bytes.data(), bytes.size()) == 0);
    std::filesystem::remove(path);
    is_first = false;
  }
}

TEST_CASE("a file that is not committed never was") {
  const test::TempFolder folder;
  {
    AtomicFile file(folder / "file");
    REQUIRE(file.Create().ok());
    REQUIRE(file.Write(Bytes(100)).ok());
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}

}  // namespace gnnd
